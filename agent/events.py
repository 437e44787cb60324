"""What happens in a run, told to listeners: one frozen record a fact.

Owns the events' types and what each carries. They are accounts, not levers: nothing a listener does with one changes
a run, another listener's copy, or a record. Nested data is kept as JSON text, and read as a new copy every time.
Arguments are redacted before they get here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from agent.checkin import CheckIn
from agent.decision import Approved, Assurance, Declined, shorten
from agent.redaction import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """A fact about a run."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord(RunEvent):
    """A fact about one proposed call."""

    call_id: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInRequested(CallRecord):
    """A person was asked for consent. Told once the ask is open."""

    ask_key: str
    question: str
    reasons: tuple[str, ...] = ()
    intent: str = ""
    arguments_json: str = "{}"
    evidence_json: str = "{}"
    middleware: str | None = None
    component_id: str | None = None
    name: Literal["checkin.request"] = "checkin.request"

    @classmethod
    def of(cls, run_id: str, ask: CheckIn) -> CheckInRequested:
        return cls(
            run_id=run_id,
            call_id=ask.call_id,
            tool=ask.action.tool,
            ask_key=ask.key,
            question=ask.question,
            reasons=ask.reasons,
            intent=ask.intent,
            arguments_json=_json(redact(ask.action.arguments, ask.redact)),
            evidence_json=_json(ask.evidence),
            middleware=ask.middleware,
            component_id=_component_id(ask),
        )

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """A copy of the arguments as they were shown."""
        return _read(self.arguments_json)

    @property
    def evidence(self) -> dict[str, JsonValue]:
        """A copy of the evidence that was shown."""
        return _read(self.evidence_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInDecided(CallRecord):
    """A person decided. Told before anything is executed."""

    ask_key: str
    approved: bool
    by: str
    note: str = ""
    assurance: Assurance = Assurance.PERSON
    edited: bool = False
    """Approved with other arguments than were asked for."""
    component_id: str | None = None
    """Which registered screen collected the decision, where the tool named one."""
    name: Literal["checkin.decision"] = "checkin.decision"

    @classmethod
    def of(cls, run_id: str, ask: CheckIn, decision: Approved | Declined) -> CheckInDecided:
        return cls(
            run_id=run_id,
            call_id=ask.call_id,
            tool=ask.action.tool,
            ask_key=ask.key,
            approved=isinstance(decision, Approved),
            by=decision.by,
            note=shorten(decision.note),
            assurance=decision.assurance,
            edited=isinstance(decision, Approved) and decision.arguments is not None,
            component_id=_component_id(ask),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDenied(CallRecord):
    """A rule said no. The reason is for operators: the model may have been told less."""

    by: str
    reason: str = ""
    name: Literal["call.denied"] = "call.denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFailure(CallRecord):
    """The policy raised, or gave no verdict; the call was denied. The detail is for operators alone."""

    detail: str
    name: Literal["policy.failed"] = "policy.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddlewareFailed(CallRecord):
    """A link of the chain raised; the call was denied. The detail is for operators alone."""

    middleware: str
    detail: str
    name: Literal["middleware.failed"] = "middleware.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecuted(CallRecord):
    """A tool ran and gave a result."""

    attempt_id: str = ""
    name: Literal["tool.executed"] = "tool.executed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailed(CallRecord):
    """A tool raised. `error` holds no values of redacted arguments."""

    error: str
    name: Literal["tool.failed"] = "tool.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(RunEvent):
    """A run ended, for whatever reason. Never told of a pause."""

    reason: str
    name: Literal["run.finished"] = "run.finished"


AnyEvent = (
    CheckInRequested
    | CheckInDecided
    | CallDenied
    | PolicyFailure
    | MiddlewareFailed
    | ToolExecuted
    | ToolFailed
    | RunFinished
)


def _component_id(ask: CheckIn) -> str | None:
    return ask.component.component_id if ask.component else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(text: str) -> Any:
    return json.loads(text)
