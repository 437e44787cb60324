"""The ask: the durable, versioned record of what is put to people, and of what they answered.

Owns the record's types and JSON form. `lifecycle.py` says how it may change; `desk.py` is what changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from agent.action import Action
from agent.approval import Staleness
from agent.checkin import Ask, CheckIn, OutcomeQuestion
from agent.decision import AnyDecision, Decision
from agent.ids import RunId
from gateway.errors import Terminal
from gateway.ids import AskId, PersonId, SessionId

ASK_SCHEMA = 1


class AskState(StrEnum):
    OPEN = "open"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's yes to one revision."""

    by: PersonId
    revision: int
    at_ms: int
    channel: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the arguments, which made a new revision."""

    by: PersonId
    at_ms: int
    arguments_before: str
    """Canonical JSON, like `Action.arguments_json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingDecision:
    """The single row that closes an ask: what, who, when, where, and to what exactly.

    `seal` is an HMAC over ask, revision, digest, kind, decider and assurance: a record that was changed in the store
    is refused before anything is executed.
    """

    decision: Decision
    at_ms: int
    channel: str
    revision: int
    digest: str
    seal: str


class OutcomeKind(StrEnum):
    """What became of an authorized call, as a decided card tells it."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: OutcomeKind
    at_ms: int
    line: str = ""
    """One line, redacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRecord:
    """One ask. `revision` counts edits; a click names the revision that it saw."""

    id: AskId
    run_id: RunId
    session_id: SessionId
    agent: str
    tenant: str
    ask: Ask
    opened_at_ms: int
    route: str
    approvers: tuple[str, ...]
    """References: a person, or `group:finance`."""
    quorum: int = 1
    requesters: tuple[PersonId, ...] = ()
    origin: str = ""
    """Where it was asked, as people call it (`#support`)."""
    deadline_ms: int | None = None
    on_expiry: Literal["adapt", "stop"] = "adapt"
    on_decline: Literal["adapt", "stop"] = "adapt"
    staleness: Staleness = Staleness()
    revision: int = 1
    state: AskState = AskState.OPEN
    votes: tuple[Vote, ...] = ()
    edits: tuple[Edit, ...] = ()
    decided: BindingDecision | None = None
    closed_at_ms: int | None = None
    closed_by: PersonId | None = None
    closed_because: str = ""
    spent_by: str | None = None
    """The attempt that used the approval."""
    revoked_by: PersonId | None = None
    outcome: Outcome | None = None
    surfaces: tuple[tuple[str, str], ...] = ()
    """Where it is shown: (channel, target) pairs."""
    schema: int = ASK_SCHEMA

    @property
    def action(self) -> Action | None:
        """What a yes would run; None for questions and input requests."""
        return self.ask.action if isinstance(self.ask, CheckIn | OutcomeQuestion) else None

    @property
    def digest(self) -> str:
        return self.action.digest if self.action else ""

    @property
    def open(self) -> bool:
        return self.state is AskState.OPEN

    @property
    def answer(self) -> AnyDecision | None:
        return self.decided.decision if self.decided else None


class UnreadableAsk(Terminal):
    """A stored ask that this version cannot read. It is kept as it is."""


_ASK: TypeAdapter[AskRecord] = TypeAdapter(AskRecord)


def dump_ask(record: AskRecord) -> bytes:
    return _ASK.dump_json(record, exclude_none=True)


def load_ask(body: bytes) -> AskRecord:
    try:
        record = _ASK.validate_json(body)
    except ValidationError as error:
        raise UnreadableAsk(f"not an ask's record: {error.error_count()} problems") from error
    if record.schema > ASK_SCHEMA:
        raise UnreadableAsk(f"ask schema {record.schema} is newer than {ASK_SCHEMA}: upgrade Signoff")
    return record
