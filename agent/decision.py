"""What people answer, as typed records, and the refusal of anything else.

Owns the answers and `DecisionRequiredError`. Knows nothing of who may give them (authority) or of how they arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue

NOTE_LIMIT = 500
CUT_MARK = "… (cut at 500 characters)"


class Assurance(StrEnum):
    """How sure we are who decided."""

    PERSON = "person"
    DELEGATED = "delegated"
    OPERATOR = "operator"


class DeciderMissing(ValueError):
    """A decision without a name. Someone must answer for every answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPerson:
    """What every decision carries: the real person who acted, by name, and how sure we are of it."""

    by: str
    assurance: Assurance = Assurance.PERSON

    def __post_init__(self) -> None:
        if not self.by.strip():
            raise DeciderMissing(f"{type(self).__name__}: `by` is required: name the person who decided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(ByPerson):
    """Yes to exactly the action shown, or, with `arguments`, to the action with these arguments instead.

    `arguments={}` is an edit to no arguments, not the absence of an edit.
    """

    note: str = ""
    arguments: dict[str, JsonValue] | None = None
    kind: Literal["approved"] = "approved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined(ByPerson):
    """No. Terminal for the ask that it answers."""

    note: str = ""
    kind: Literal["declined"] = "declined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(ByPerson):
    """The answer to a question. Never consent."""

    answer: JsonValue = None
    kind: Literal["answered"] = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReceived(ByPerson):
    """Values for an input request: all that were asked for, or a part. Never consent."""

    request_id: str
    values: dict[str, JsonValue]
    kind: Literal["input_received"] = "input_received"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCancelled(ByPerson):
    """The input will not be given; the run ends, the conversation is kept."""

    request_id: str
    kind: Literal["input_cancelled"] = "input_cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened(ByPerson):
    """Outcome question: the call took effect."""

    note: str = ""
    kind: Literal["happened"] = "happened"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgain(ByPerson):
    """Outcome question: the call took no effect; run it now. A new approval of the same digest."""

    note: str = ""
    kind: Literal["run_again"] = "run_again"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp(ByPerson):
    """Outcome question: stop the run; whether the call took effect stays unknown."""

    note: str = ""
    kind: Literal["given_up"] = "given_up"


AnyDecision = Approved | Declined | Answered | InputReceived | InputCancelled | Happened | RunAgain | GivenUp
Decision = Annotated[AnyDecision, Field(discriminator="kind")]
"""`AnyDecision` as pydantic reads it from JSON."""


class DecisionRequiredError(TypeError):
    """A gate was answered with something that is not a decision it takes. The checkpoint is untouched.

    Names the gate, the tool, the middleware that asked (if one did) and the *shape* of what arrived, never its
    content: an answer is caller's data, and messages end up in logs.
    """

    code = "ERR_DECISION_REQUIRED"

    def __init__(
        self, *, gate: str, tool: str, middleware: str | None, expected: str, received: object
    ) -> None:
        self.gate, self.tool, self.middleware = gate, tool, middleware
        self.received = shape(received)
        asked_by = f" (asked by middleware {middleware!r})" if middleware else ""
        super().__init__(
            f"{self.code}: the {gate} on {tool!r}{asked_by} takes {expected}; received {self.received}. "
            "Nothing was executed and the checkpoint is unchanged: answer it again."
        )


def shape(value: object) -> str:
    """What kind of thing a value is, without any of its content."""
    match value:
        case None:
            return "nothing"
        case str():
            return "a string"
        case Mapping():
            return f"a mapping with {len(cast(Sized, value))} keys"
        case _:
            return f"a value of type {type(value).__name__}"


def shorten(note: str) -> str:
    """A note as it is kept: at most 500 characters, and a mark where more was written."""
    if len(note) <= NOTE_LIMIT or (len(note) == NOTE_LIMIT + len(CUT_MARK) and note.endswith(CUT_MARK)):
        return note
    return note[:NOTE_LIMIT] + CUT_MARK


def with_note_cut(decision: AnyDecision) -> AnyDecision:
    """The decision with its note, if it has one, shortened to what is kept."""
    match decision:
        case Answered() | InputReceived() | InputCancelled():
            return decision
        case _:
            return replace(decision, note=shorten(decision.note))
