"""A row of the journal as data: its kinds, its fields, its JSON form.

Owns what a row may say. A kind never changes its meaning; fields are only appended. What came with an action's
arguments is never in a row, except in texts that went through the redactor (`journal.py` writes them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from agent.decision import Assurance
from gateway.errors import Terminal

ROW_SCHEMA = 1


class Kind(StrEnum):
    """What a row tells of. `MEANINGS` says it in words."""

    ASK = "ask"
    APPROVED = "approved"
    ALWAYS_APPROVED = "always-approved"
    DECLINED = "declined"
    USED = "used"
    REFUSED = "refused"
    REVOKED = "revoked"
    VOTED = "voted"
    EDITED = "edited"
    ANSWERED = "answered"
    INPUT_RECEIVED = "input-received"
    INPUT_CANCELLED = "input-cancelled"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"
    RUN_STARTED = "run-started"
    STOP_REQUESTED = "stop-requested"
    RUN_FINISHED = "run-finished"
    EXECUTED = "executed"
    EXECUTED_LATE = "executed-late"
    OUTCOME_UNKNOWN = "outcome-unknown"
    DELIVERED = "delivered"
    DELIVERY_FAILED = "delivery-failed"


MEANINGS: Mapping[Kind, str] = {
    Kind.ASK: "An ask was opened. `note` is its question.",
    Kind.APPROVED: "A yes that binds: it authorizes one execution of the action with this digest. `code` is"
    " `run-again` for the answer “it did not happen: run it” to an outcome question.",
    Kind.ALWAYS_APPROVED: "A standing approval was given.",
    Kind.DECLINED: "A no. It binds, unless `relayed`: then an agent reported it, and nothing was closed.",
    Kind.USED: "An approval was spent, by `attempt`.",
    Kind.REFUSED: "An action was not executed, or an answer not taken; `code` says why. Never left out, however often.",
    Kind.REVOKED: "A yes was taken back before it was used.",
    Kind.VOTED: "A yes that does not bind yet: more persons have to agree.",
    Kind.EDITED: "The arguments were changed: a new revision. `fields` names what differs.",
    Kind.ANSWERED: "A question was answered; `note` is the answer. For an outcome question, `code` is `happened` or"
    " `given-up`, and `note` is the person's note.",
    Kind.INPUT_RECEIVED: "Values that were asked for came in. `code` is `part` or `complete`, `fields` names them.",
    Kind.INPUT_CANCELLED: "Values that were asked for will not be given.",
    Kind.EXPIRED: "Nobody decided in time. Nothing was run.",
    Kind.WITHDRAWN: "An open ask was taken back.",
    Kind.SUPERSEDED: "Nobody needs to answer an ask any more; `note` says why.",
    Kind.RUN_STARTED: "A message started a run; `by` is who wrote it.",
    Kind.STOP_REQUESTED: "A person asked for a run to end.",
    Kind.RUN_FINISHED: "A run ended; `code` is the reason.",
    Kind.EXECUTED: "A call was executed; `code` is its result's status.",
    Kind.EXECUTED_LATE: "A call that had been given up, and was run again or answered for, did execute after all."
    " Somebody should look.",
    Kind.OUTCOME_UNKNOWN: "A call was started, and it is not known whether it took effect.",
    Kind.DELIVERED: "A channel took a card, a mail or a notice.",
    Kind.DELIVERY_FAILED: "A channel did not, for good; `note` says why.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRow:
    """One row. Its partition, number and time are the store's and stand beside it (`ports.Row`)."""

    kind: Annotated[Kind | str, Field(union_mode="left_to_right")]
    """A plain text for a kind that a later version writes."""
    run_id: str = ""
    session_id: str = ""
    ask_id: str = ""
    agent: str = ""
    tool: str = ""
    by: str = ""
    assurance: Assurance | None = None
    channel: str = ""
    target: str = ""
    """Where in the channel."""
    revision: int | None = None
    digest: str = ""
    """Keyed, where the action hides values."""
    attempt: str = ""
    code: str = ""
    note: str = ""
    fields: tuple[str, ...] = ()
    """Names of arguments or values; never what they hold."""
    relayed: bool = False

    @property
    def known(self) -> bool:
        return isinstance(self.kind, Kind)


class UnreadableRow(Terminal):
    """A stored row that is not one of ours. It is kept as it is."""


_ROW: TypeAdapter[JournalRow] = TypeAdapter(JournalRow)


def dump_row(row: JournalRow) -> bytes:
    return json.dumps(
        {"schema": ROW_SCHEMA, **as_mapping(row)}, ensure_ascii=False, separators=(",", ":")
    ).encode(errors="backslashreplace")


def load_row(body: bytes) -> JournalRow:
    """Read a row of this version or any other: later kinds stay as they are called, later fields are passed over."""
    try:
        return _ROW.validate_json(body)
    except ValidationError as error:
        raise UnreadableRow(f"not a row of the journal: {error.error_count()} problems") from error


def as_mapping(row: JournalRow) -> dict[str, JsonValue]:
    """The row's fields, without those that say nothing."""
    return cast("dict[str, JsonValue]", _ROW.dump_python(row, mode="json", exclude_defaults=True))
