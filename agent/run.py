"""A run as data: what a checkpoint holds, without the transcript.

Owns the state's types and their JSON form. Decides nothing: `loop.py` says how a state moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue, TypeAdapter, ValidationError

from agent.action import Action
from agent.checkin import Ask
from agent.decision import Approved
from agent.ids import AskKey, AttemptId, RunId
from agent.messages import ToolResult

STATE_VERSION = 1


class Phase(StrEnum):
    """Where a run stands."""

    READY = "ready"
    THINKING = "thinking"
    JUDGING = "judging"
    ACTING = "acting"
    CLOSING = "closing"
    """No further model call will be made; calls that were started are waited for."""
    FINISHED = "finished"


class CallPhase(StrEnum):
    """Where one proposed call stands."""

    PROPOSED = "proposed"
    ALLOWED = "allowed"
    HELD = "held"
    """Needs a person; the ask opens once the whole reply is judged."""
    WAITING = "waiting"
    ASKING = "asking"
    RUNNING = "running"
    COLLECTING = "collecting"
    COLLECTED = "collected"
    UNKNOWN = "unknown"
    SETTLED = "settled"


class FinishReason(StrEnum):
    """How a run ended."""

    END_TURN = "end_turn"
    MAX_TURNS = "max_turns"
    DENIED = "denied"
    HALTED = "halted"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    CONTEXT_FULL = "context_full"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class PauseReason(StrEnum):
    """What a paused run waits for; the first that applies, in this order."""

    PENDING_APPROVAL = "pending_approval"
    PENDING_QUESTION = "pending_question"
    AWAITING_INPUT = "awaiting_input"


OnNo = Literal["adapt", "stop"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What an agent's author decided about its runs. Kept in the state, so that a resume cannot lose it."""

    on_decline: OnNo = "adapt"
    on_expiry: OnNo = "adapt"
    max_turns: int = 25


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at executing a call. The idempotency key is the same for every attempt of one call."""

    id: AttemptId
    number: int
    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that the model proposed, and all that became of it."""

    id: str
    place: int
    tool: str
    arguments: dict[str, JsonValue]
    phase: CallPhase = CallPhase.PROPOSED
    action: Action | None = None
    """What was judged, shown and may run: normalized, transformed, perhaps edited."""
    sentence: str = ""
    redact: tuple[str, ...] = ()
    asks: int = 0
    """How many asks this call has had."""
    ask_key: AskKey | None = None
    """The open one."""
    ask: Ask | None = None
    """The ask itself, while the loop still needs it: held back, or collecting input."""
    approved: Approved | None = None
    attempts: tuple[Attempt, ...] = ()
    result: ToolResult | None = None
    halts: bool = False
    """Denied by a rule that ends the run."""

    @property
    def attempt(self) -> Attempt | None:
        """The latest one."""
        return self.attempts[-1] if self.attempts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A checkpoint: data alone, and everything that a fresh process needs beside the transcript."""

    run_id: RunId
    agent: str
    tenant: str = "default"
    rules: Rules = field(default_factory=Rules)
    phase: Phase = Phase.READY
    turn: int = 0
    """Replies of the model so far."""
    calls: tuple[Call, ...] = ()
    """The current reply's calls, in the order in which they were proposed."""
    intent: str = ""
    """The model's text beside these calls."""
    request: str = ""
    """The message that started the run."""
    model_failures: int = 0
    """In a row."""
    closing: FinishReason | None = None
    stopped_by: str = ""
    finish: FinishReason | None = None
    text: str = ""
    """The model's last words."""
    detail: str = ""
    """For operators: why it failed. Never shown to the model or in a chat."""
    version: int = STATE_VERSION

    def call(self, call_id: str) -> Call | None:
        return next((call for call in self.calls if call.id == call_id), None)

    def in_phase(self, *phases: CallPhase) -> Iterator[Call]:
        return (call for call in self.calls if call.phase in phases)

    def with_call(self, changed: Call) -> RunState:
        return replace(self, calls=tuple(changed if c.id == changed.id else c for c in self.calls))

    @property
    def pause(self) -> PauseReason | None:
        """What the run waits for, if it cannot go on by itself."""
        return pause_reason(self)


_WAITS_FOR: tuple[tuple[PauseReason, tuple[CallPhase, ...]], ...] = (
    (PauseReason.PENDING_APPROVAL, (CallPhase.WAITING,)),
    (PauseReason.PENDING_QUESTION, (CallPhase.ASKING, CallPhase.UNKNOWN)),
    (PauseReason.AWAITING_INPUT, (CallPhase.COLLECTING,)),
)


def pause_reason(state: RunState) -> PauseReason | None:
    """The reason a run is paused; None while anything can still move, or once it finished."""
    if state.phase not in (Phase.ACTING, Phase.CLOSING):
        return None
    if any(state.in_phase(CallPhase.RUNNING, CallPhase.COLLECTED)):
        return None
    return next((reason for reason, phases in _WAITS_FOR if any(state.in_phase(*phases))), None)


class UnreadableState(ValueError):
    """A stored state that this version cannot read. It is kept as it is."""


_STATE: TypeAdapter[RunState] = TypeAdapter(RunState)


def dump_state(state: RunState) -> bytes:
    return _STATE.dump_json(state, exclude_none=True)


def load_state(data: bytes | str) -> RunState:
    """Read a state of this version, or an earlier one upgraded. Raises UnreadableState."""
    try:
        state = _STATE.validate_json(data)
    except ValidationError as error:
        raise UnreadableState(f"not a run's state: {error.error_count()} problems") from error
    if state.version > STATE_VERSION:
        raise UnreadableState(f"state version {state.version} is newer than {STATE_VERSION}: upgrade Signoff")
    return state
