"""What a run may ask of people: consent, an answer, missing values, or what happened.

Owns the four kinds of ask as the agent knows them, and which decisions answer which. Knows nothing of who is asked,
of deadlines, or of how an ask is shown: the gateway adds those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from agent.action import Action
from agent.decision import (
    Answered,
    AnyDecision,
    Approved,
    DecisionRequiredError,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    InputReceived,
    RunAgain,
)
from agent.ids import AskKey
from agent.input_request import InputRequest


@dataclass(frozen=True, slots=True)
class Component:
    """Which registered screen of an application should collect the decision: ids and small props, never markup."""

    component_id: str
    props: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    """The consent gate on an action: may I do exactly this?"""

    key: AskKey
    call_id: str
    action: Action
    question: str
    intent: str
    """The model's own words of the same turn. Unverified."""
    reasons: tuple[str, ...]
    """What tripped: the tool's check-in, a policy's rule, a middleware's question."""
    evidence: dict[str, JsonValue]
    middleware: str | None = None
    component: Component | None = None
    redact: tuple[str, ...] = ()
    schema: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The tool's argument schema as it was when the ask was opened."""
    state_version: str | None = None
    kind: Literal["check_in"] = "check_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The model is unsure and asks. Any answer is taken."""

    key: AskKey
    call_id: str
    question: str
    options: tuple[str, ...] = ()
    intent: str = ""
    kind: Literal["question"] = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeQuestion:
    """Opened after a crash or a time-out: did this happen?

    `safe` tells whether the process that started the attempt is known to be gone, so that it cannot still happen.
    """

    key: AskKey
    call_id: str
    action: Action
    question: str
    attempt_id: str
    safe: bool
    redact: tuple[str, ...] = ()
    kind: Literal["outcome_question"] = "outcome_question"


AnyAsk = CheckIn | Question | InputRequest | OutcomeQuestion
Ask = Annotated[AnyAsk, Field(discriminator="kind")]

TAKES: Mapping[type[AnyAsk], tuple[type[AnyDecision], ...]] = {
    CheckIn: (Approved, Declined),
    Question: (Answered,),
    InputRequest: (InputReceived, InputCancelled),
    OutcomeQuestion: (Happened, RunAgain, GivenUp),
}
"""Which decisions answer which ask."""

GATE_NAMES: Mapping[type[AnyAsk], str] = {
    CheckIn: "check-in",
    Question: "question",
    InputRequest: "input request",
    OutcomeQuestion: "outcome question",
}


def demands_decision(ask: AnyAsk) -> bool:
    """Whether only a decision answers this ask. A plain question takes any value."""
    return not isinstance(ask, Question)


def require_decision(ask: AnyAsk, given: object) -> AnyDecision:
    """The decision, if it is one that this ask takes; else DecisionRequiredError, with the ask untouched."""
    taken = TAKES[type(ask)]
    if isinstance(given, taken):
        return given
    raise DecisionRequiredError(
        gate=GATE_NAMES[type(ask)] if getattr(ask, "middleware", None) is None else "middleware ask",
        tool=ask_tool(ask),
        middleware=ask.middleware if isinstance(ask, CheckIn) else None,
        expected=" or ".join(t.__name__ for t in taken),
        received=given,
    )


def ask_tool(ask: AnyAsk) -> str:
    """The tool that an ask is about."""
    match ask:
        case CheckIn() | OutcomeQuestion():
            return ask.action.tool
        case Question():
            return "ask_user"
        case InputRequest():
            return ask.tool
