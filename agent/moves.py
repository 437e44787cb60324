"""What a run is told and what it wants done: events in, commands out. Data alone.

Events are facts that a driver brings; commands are what `loop.advance` wants of it. User code (predicates,
middleware, models, tools, scorers) runs in the driver and comes back as an event.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.action import Action
from agent.checkin import AnyAsk
from agent.decision import AnyDecision, InputReceived
from agent.ids import AskKey, AttemptId
from agent.input_request import InputRequest
from agent.messages import ResultStatus
from agent.model import ModelFailure, Reply
from agent.run import Attempt, FinishReason

# --- verdicts of the gate ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """May run now."""

    action: Action
    sentence: str
    redact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Needs a person first: consent, or an answer. `action` is what would run on a yes; a question has none."""

    ask: AnyAsk
    action: Action | None = None
    sentence: str = ""
    redact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """A rule says no. `tell` is what the model reads, the reason goes to operators in an event; `halt` ends the run."""

    tell: str
    halt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Cannot be considered: an unknown tool, arguments that do not fit. Nobody said no."""

    code: str
    problem: str


Verdict = Execute | Hold | Deny | Refuse

# --- events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A fact that moves a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent(Event):
    """A fact about one call of the current turn."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskEvent(CallEvent):
    """A fact about the open ask of a call."""

    ask_key: AskKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEvent(CallEvent):
    """A fact about the latest attempt at a call."""

    attempt_id: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived(Event):
    text: str
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied(Event):
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed(Event):
    """`retry_after` in seconds, where the vendor named one; `detail` is for operators."""

    kind: ModelFailure
    retry_after: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(CallEvent):
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(AskEvent):
    """A binding decision. `action` is what runs instead, and `sentence` says it, when the arguments were edited."""

    decision: AnyDecision
    action: Action | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReceived(AskEvent):
    """Values for an input request: all, or a part."""

    reply: InputReceived


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired(AskEvent):
    """Nobody decided in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(AskEvent):
    """Whoever asked no longer wants it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned(AttemptEvent):
    """`content` is what the model reads: rendered, and through the after-tool middleware."""

    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRaised(AttemptEvent):
    """The tool raised; or, not `executed`, it was refused at the door because the code or the action changed."""

    error: str
    executed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAsked(AttemptEvent):
    """The tool returned a declaration that values are missing."""

    request: InputRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeUnknown(AttemptEvent):
    """An attempt without a result: it timed out, was cancelled, or its process is gone (then `safe`)."""

    idempotent: bool
    safe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(AttemptEvent):
    """A result that was found on recovery, or came late."""

    content: str
    status: ResultStatus


# --- commands ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model after so many seconds."""

    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Judge:
    call_id: str


@dataclass(frozen=True, slots=True)
class OpenAsk:
    call_id: str
    ask: AnyAsk


@dataclass(frozen=True, slots=True)
class CloseAsk:
    """Nobody needs to answer this any more."""

    call_id: str
    ask_key: AskKey


@dataclass(frozen=True, slots=True)
class RunTool:
    call_id: str
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Conclude:
    """All values of an input request are there: pass them through the after-tool middleware, once."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Finish:
    reason: FinishReason


Command = CallModel | Judge | OpenAsk | CloseAsk | RunTool | Conclude | Finish
