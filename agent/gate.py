"""The one chokepoint: what may happen with a proposed call.

Owns the fixed order: policy, before-tool middleware, argument validation, check-in. Judging has no side effects and may
be repeated. What it finds out for operators (a policy that failed, a link that raised) leaves as events.
"""

from __future__ import annotations

import inspect
import secrets as secrets_module
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agent import evidence, middleware
from agent.action import Action, capture
from agent.canonical import NotFaithful, copy_faithfully
from agent.checkin import CheckIn, Question
from agent.events import CallDenied, MiddlewareFailed, PolicyFailure
from agent.evidence import EvidenceRequest
from agent.ids import AskKey
from agent.messages import Transcript
from agent.middleware import Asked, Passed, Stopped, ToolCall
from agent.moves import Deny, Execute, Hold, Refuse, Verdict
from agent.policy import (
    PolicyAllow,
    PolicyAsk,
    PolicyDeny,
    PolicyFailed,
    PolicyHalt,
    PolicyRequest,
    PolicyVerdict,
    consult,
)
from agent.redaction import redact, scrub, secrets
from agent.run import Call, RunState
from agent.scorer import overlap
from agent.spec import AgentSpec
from agent.tools import CheckInContext, InvalidArguments, Tool, demand, is_ask_user

Emit = Callable[[object], None]


@dataclass(frozen=True, slots=True)
class Revised:
    """Edited arguments that passed the chain again: the action to run, and whether the chain changed them further.

    `sentence` is the tool's question about the edited action: whatever is shown from now on is about what runs.
    """

    action: Action
    sentence: str
    transformed: bool


async def judge(spec: AgentSpec, state: RunState, call: Call, transcript: Transcript, emit: Emit) -> Verdict:
    """What may happen with this call. Raises nothing: whatever fails, fails closed."""
    try:
        arguments = _plain(call.arguments)
    except NotFaithful as error:
        return Refuse(code="NOT_FAITHFUL", problem=f"the arguments cannot be read faithfully: {error}")
    if is_ask_user(spec.toolbox, call.tool):
        return _question(call, arguments, state.intent)
    tool = spec.toolbox.get(call.tool)
    if tool is None:
        return Refuse(code="UNKNOWN_TOOL", problem=f"there is no tool {call.tool!r}")
    checked = await _check(spec, state, call, tool, arguments, emit)
    if not isinstance(checked, _Checked):
        return checked
    return await _check_in(spec, state, call, tool, checked, transcript)


async def revise(
    spec: AgentSpec, state: RunState, call: Call, arguments: dict[str, JsonValue], emit: Emit
) -> Revised | Deny | Refuse:
    """Judge edited arguments: the whole chain again, except that nobody is asked; the person is here already."""
    tool = spec.toolbox.get(call.tool)
    if tool is None or call.action is None or call.action.schema_hash != tool.schema_hash:
        return Refuse(code="TOOL_CHANGED", problem=f"the tool {call.tool!r} changed since it was shown")
    try:
        given = tool.validate(_plain(arguments))
    except (NotFaithful, InvalidArguments) as error:
        return Refuse(code="INVALID_ARGUMENTS", problem=str(error))
    checked = await _check(spec, state, call, tool, given, emit)
    if not isinstance(checked, _Checked):
        return checked
    action = _capture(state, tool, checked.arguments)
    return Revised(action, tool.question(checked.arguments), transformed=checked.arguments != given)


async def world_version(tool: Tool, action: Action) -> str | None:
    """The world's version as the tool tells it, now. One that cannot be had never matches another."""
    if tool.state_version is None:
        return None
    try:
        version = tool.state_version(action.arguments)
        return str(await version if inspect.isawaitable(version) else version)
    except Exception as error:
        return f"unavailable: {type(error).__name__} {secrets_module.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class _Checked:
    """A call that no rule objects to: normalized arguments, and who wants a person to be asked."""

    arguments: dict[str, JsonValue]
    policy_reason: str | None
    asked: Asked | None


async def _check(
    spec: AgentSpec, state: RunState, call: Call, tool: Tool, arguments: dict[str, JsonValue], emit: Emit
) -> _Checked | Deny | Refuse:
    """Policy, then the whole before-tool chain, then validation."""
    verdict = await _consult(spec, state, call, arguments, emit)
    if isinstance(verdict, Deny):
        return verdict
    seen = ToolCall(
        tool=call.tool, arguments=arguments, call_id=call.id, run_id=state.run_id, iteration=state.turn
    )
    passed = await middleware.before(spec.middleware, seen)
    if isinstance(passed, Stopped):
        return _stopped(state, call, passed, emit)
    return _validated(tool, passed, verdict.reason if isinstance(verdict, PolicyAsk) else None)


async def _consult(
    spec: AgentSpec, state: RunState, call: Call, arguments: dict[str, JsonValue], emit: Emit
) -> PolicyVerdict | Deny:
    request = PolicyRequest(tenant=state.tenant, agent=state.agent, tool=call.tool, arguments=arguments)
    try:
        verdict = await consult(spec.policy, request)
    except PolicyFailed as error:
        emit(PolicyFailure(run_id=state.run_id, call_id=call.id, tool=call.tool, detail=str(error)))
        return Deny(tell="")
    match verdict:
        case PolicyDeny(reason=reason, tell_llm=tell):
            emit(CallDenied(run_id=state.run_id, call_id=call.id, tool=call.tool, by="policy", reason=reason))
            return Deny(tell=tell)
        case PolicyHalt(reason=reason):
            emit(CallDenied(run_id=state.run_id, call_id=call.id, tool=call.tool, by="policy", reason=reason))
            return Deny(tell="", halt=True)
        case PolicyAllow() | PolicyAsk():
            return verdict


def _stopped(state: RunState, call: Call, stopped: Stopped, emit: Emit) -> Deny:
    if stopped.detail:
        emit(
            MiddlewareFailed(
                run_id=state.run_id,
                call_id=call.id,
                tool=call.tool,
                middleware=stopped.middleware,
                detail=stopped.detail,
            )
        )
    by = f"middleware {stopped.middleware}"
    emit(CallDenied(run_id=state.run_id, call_id=call.id, tool=call.tool, by=by, reason=stopped.reason))
    return Deny(tell=stopped.reason)


def _validated(tool: Tool, passed: Passed, policy_reason: str | None) -> _Checked | Refuse:
    try:
        return _Checked(tool.validate(passed.arguments), policy_reason, passed.asked)
    except InvalidArguments as error:
        return Refuse(code="INVALID_ARGUMENTS", problem=str(error))


async def _check_in(
    spec: AgentSpec, state: RunState, call: Call, tool: Tool, checked: _Checked, transcript: Transcript
) -> Verdict:
    """The tool's own demand. Together with a middleware's ask it is refused: they are two questions, one answer."""
    context = CheckInContext(iteration=state.turn, tool_call_id=call.id, history=transcript)
    demanded = await demand(tool, checked.arguments, context)
    if demanded and checked.asked:
        return Refuse(
            code="TWO_GATES",
            problem=f"middleware {checked.asked.middleware!r} and the check-in of {tool.name!r} both ask about"
            " one call; keep one gate per call",
        )
    try:
        action = _capture(state, tool, checked.arguments)
    except NotFaithful as error:
        return Refuse(code="NOT_FAITHFUL", problem=f"the arguments cannot be captured faithfully: {error}")
    sentence = tool.question(checked.arguments)
    reasons = tuple(
        reason for reason in (checked.policy_reason, demanded, _asked_text(checked.asked)) if reason
    )
    if not reasons and checked.policy_reason is None:
        return Execute(action=action, sentence=sentence, redact=tool.redact)
    ask = await _ask(spec, state, call, tool, action, checked.asked, reasons, transcript)
    return Hold(ask=ask, action=action, sentence=ask.question, redact=tool.redact)


async def _ask(
    spec: AgentSpec,
    state: RunState,
    call: Call,
    tool: Tool,
    action: Action,
    asked: Asked | None,
    reasons: tuple[str, ...],
    transcript: Transcript,
) -> CheckIn:
    hidden = secrets(action.arguments, tool.redact)
    return CheckIn(
        key=AskKey(""),
        call_id=call.id,
        action=action,
        question=tool.question(action.arguments),
        intent=scrub(state.intent, hidden),
        reasons=reasons,
        evidence=await _evidence(spec, state, tool, action, transcript, hidden),
        middleware=asked.middleware if asked else None,
        component=tool.check_in_component,
        redact=tool.redact,
        schema=tool.schema,
        state_version=await world_version(tool, action),
    )


async def _evidence(
    spec: AgentSpec,
    state: RunState,
    tool: Tool,
    action: Action,
    transcript: Transcript,
    hidden: frozenset[str],
) -> dict[str, JsonValue]:
    request = EvidenceRequest(
        tool=tool.name,
        description=tool.description,
        arguments=redact(action.arguments, tool.redact),
        intent=state.intent,
        system=spec.system,
        transcript=transcript,
        iteration=state.turn,
    )
    pack = await _pack(spec, request)
    return cast(dict[str, JsonValue], _scrubbed(pack, hidden)) if hidden else pack


async def _pack(spec: AgentSpec, request: EvidenceRequest) -> dict[str, JsonValue]:
    """The evidence as the author configured it. One that cannot be assembled is told as such; the ask stands."""
    try:
        if callable(spec.evidence):
            return await evidence.own(request, spec.evidence)
        if spec.evidence == "minimal":
            return evidence.minimal(request)
        return evidence.standard(request, spec.scorer or overlap)
    except Exception as error:
        return {**evidence.minimal(request), "problem": f"not assembled: {type(error).__name__}"}


def _scrubbed(value: JsonValue, hidden: frozenset[str]) -> JsonValue:
    match value:
        case str():
            return scrub(value, hidden)
        case list():
            return [_scrubbed(item, hidden) for item in value]
        case dict():
            return {key: _scrubbed(item, hidden) for key, item in value.items()}
        case _:
            return value


def _question(call: Call, arguments: dict[str, JsonValue], intent: str) -> Verdict:
    question, options = arguments.get("question"), arguments.get("options") or []
    texts = isinstance(options, list) and all(
        isinstance(option, str) and option.strip() for option in options
    )
    if not (isinstance(question, str) and question.strip() and texts):
        return Refuse(
            code="INVALID_ARGUMENTS", problem="ask_user takes a question, and options as a list of texts"
        )
    unique = tuple(dict.fromkeys(cast(list[str], options)))
    ask = Question(key=AskKey(""), call_id=call.id, question=question, options=unique, intent=intent)
    return Hold(ask=ask, sentence=question)


def _capture(state: RunState, tool: Tool, arguments: dict[str, JsonValue]) -> Action:
    return capture(tenant=state.tenant, tool=tool.name, schema_hash=tool.schema_hash, arguments=arguments)


def _plain(arguments: object) -> dict[str, JsonValue]:
    copied = copy_faithfully(arguments)
    if not isinstance(copied, dict):
        raise NotFaithful("arguments must be an object")
    return copied


def _asked_text(asked: Asked | None) -> str | None:
    """Why a link asked. The card's own question stays the tool's: what happens on a yes."""
    if asked is None:
        return None
    detail = f" ({asked.detail})" if asked.detail else ""
    return f"{asked.middleware}: {asked.question}{detail}"
