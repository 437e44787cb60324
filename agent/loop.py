"""How a run moves: `advance(state, event) -> Step`, without I/O.

Owns what each event does. Every (phase, event) pair that the tables of `transitions.py` do not list raises
`IllegalEvent` and leaves the state, which is immutable, as it was. Judging, tools and models run in a driver and come
back as events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never, cast

from agent import told
from agent.action import Action
from agent.checkin import AnyAsk, OutcomeQuestion
from agent.decision import (
    Answered,
    Approved,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    RunAgain,
    with_note_cut,
)
from agent.ids import AskKey, AttemptId
from agent.input_request import InputRequest, accept, check_cancel
from agent.messages import AssistantMessage, ResultsMessage, ResultStatus, ToolResult, UserMessage
from agent.model import ModelFailure, StopReason
from agent.moves import (
    AnswerReceived,
    AskEvent,
    AttemptEvent,
    CallEvent,
    CallModel,
    CloseAsk,
    Command,
    Conclude,
    Decided,
    Deny,
    Event,
    Execute,
    Expired,
    Finish,
    Hold,
    InputAsked,
    Judge,
    Judged,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    OpenAsk,
    OutcomeUnknown,
    Refuse,
    RunTool,
    Settled,
    StopRequested,
    ToolRaised,
    ToolReturned,
    Withdrawn,
)
from agent.run import Attempt, Call, CallPhase, FinishReason, Phase, RunState
from agent.transitions import CALL_TABLE, RUN_TABLE

MAX_CALLS = 64
MAX_MODEL_FAILURES = 5
MAX_IDEMPOTENT_ATTEMPTS = 3
LONGEST_BACKOFF = 30.0
"""Seconds."""

P, C = Phase, CallPhase


class IllegalEvent(Exception):
    """An event that the tables do not list for where the run stands. The state is unchanged."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one event led to: the next state, what to do now, and what to append to the transcript."""

    state: RunState
    commands: tuple[Command, ...] = ()
    messages: tuple[UserMessage | AssistantMessage | ResultsMessage, ...] = ()


def advance(state: RunState, event: Event) -> Step:
    """Move a run by one event. Raises IllegalEvent, or InputRequestError for a bad answer; the state stays usable."""
    targets = RUN_TABLE[state.phase].get(type(event))
    if targets is None:
        raise IllegalEvent(f"a run that is {state.phase} takes no {type(event).__name__}")
    call = _addressed(state, event) if isinstance(event, CallEvent) else None
    step = _HANDLERS[type(event)](state, event)
    _check_targets(state, event, step.state, targets, call)
    return step


def pending(state: RunState) -> tuple[Command, ...]:
    """What a driver that just loaded this state has to do; a wait before a model call is over by then.

    Calls that were running are for recovery to judge.
    """
    match state.phase:
        case Phase.THINKING:
            return (CallModel(),)
        case Phase.JUDGING:
            return tuple(Judge(call.id) for call in state.in_phase(C.PROPOSED))
        case Phase.ACTING | Phase.CLOSING:
            return tuple(Conclude(call.id) for call in state.in_phase(C.COLLECTED))
        case Phase.READY | Phase.FINISHED:
            return ()
        case _:
            assert_never(state.phase)


def backoff(failures: int) -> float:
    """Seconds to wait before the next model call after so many failures in a row."""
    return min(0.5 * 2.0**failures, LONGEST_BACKOFF)


def _addressed(state: RunState, event: CallEvent) -> Call:
    """The call that an event is about, if it takes this event from this ask or attempt."""
    call = state.call(event.call_id)
    if call is None:
        raise IllegalEvent(f"{type(event).__name__}: no call {event.call_id!r} in this turn")
    if type(event) not in CALL_TABLE[call.phase]:
        raise IllegalEvent(f"a call that is {call.phase} takes no {type(event).__name__}")
    if isinstance(event, AskEvent) and event.ask_key != call.ask_key:
        raise IllegalEvent(f"{type(event).__name__}: the ask {event.ask_key!r} is not the open one")
    if isinstance(event, AttemptEvent) and (call.attempt is None or event.attempt_id != call.attempt.id):
        raise IllegalEvent(f"{type(event).__name__}: {event.attempt_id!r} is not the latest attempt")
    return call


def _check_targets(
    before: RunState, event: Event, after: RunState, targets: frozenset[Phase], call: Call | None
) -> None:
    """The tables are the truth: a handler that leads elsewhere is a defect, and must not be committed."""
    if after.phase not in targets:
        raise IllegalEvent(f"{type(event).__name__} led a run from {before.phase} to {after.phase}")
    moved = after.call(call.id) if call else None
    if call and moved and moved.phase not in CALL_TABLE[call.phase][type(event)]:
        raise IllegalEvent(f"{type(event).__name__} led a call from {call.phase} to {moved.phase}")


# --- the model -------------------------------------------------------------------------------------------------


def _on_message(state: RunState, event: MessageReceived) -> Step:
    moved = replace(state, phase=P.THINKING, request=event.text)
    return Step(moved, (CallModel(),), (UserMessage(event.text, event.author),))


def _on_reply(state: RunState, event: ModelReplied) -> Step:
    message, stop = event.reply.message, event.reply.stop
    state = replace(state, turn=state.turn + 1, model_failures=0, text=message.text or state.text, calls=())
    said: tuple[AssistantMessage, ...] = (message,) if message.content else ()
    if stop in _ENDS_EARLY:
        reason, tell = _ENDS_EARLY[stop]
        return Step(_finished(state, reason), (Finish(reason),), (*said, *_unexecuted(message, tell)))
    if message.tool_uses:
        return _propose(state, message)
    if stop is StopReason.PAUSE_TURN:
        return _think_again(state, said)
    return Step(_finished(state, FinishReason.END_TURN), (Finish(FinishReason.END_TURN),), said)


_ENDS_EARLY: Mapping[StopReason, tuple[FinishReason, str]] = {
    StopReason.MAX_TOKENS: (FinishReason.TRUNCATED, told.REPLY_CUT_OFF),
    StopReason.REFUSAL: (FinishReason.REFUSED, told.REPLY_REFUSED),
    StopReason.CONTEXT_FULL: (FinishReason.CONTEXT_FULL, told.REPLY_CUT_OFF),
}


def _unexecuted(message: AssistantMessage, tell: str) -> tuple[ResultsMessage, ...]:
    """Pair every call of a reply that none of them was considered of."""
    uses = message.tool_uses
    results = tuple(ToolResult(use.id, use.name, tell, ResultStatus.SKIPPED) for use in uses)
    return (ResultsMessage(results),) if results else ()


def _propose(state: RunState, message: AssistantMessage) -> Step:
    uses = message.tool_uses
    if len({use.id for use in uses}) != len(uses):
        failed = replace(state, detail="the model used one tool_use id twice in a reply")
        return Step(_finished(failed, FinishReason.FAILED), (Finish(FinishReason.FAILED),))
    calls = tuple(
        Call(id=use.id, place=place, tool=use.name, arguments=use.arguments) for place, use in enumerate(uses)
    )
    calls = (
        *calls[:MAX_CALLS],
        *(_settle(c, told.TOO_MANY_CALLS, ResultStatus.ERROR) for c in calls[MAX_CALLS:]),
    )
    moved = replace(state, phase=P.JUDGING, calls=calls, intent=message.text)
    return Step(moved, tuple(Judge(call.id) for call in calls[:MAX_CALLS]), (message,))


def _on_model_failure(state: RunState, event: ModelFailed) -> Step:
    failures = state.model_failures + 1
    if event.kind.passing and failures < MAX_MODEL_FAILURES:
        wait = event.retry_after if event.retry_after is not None else backoff(failures)
        return Step(replace(state, model_failures=failures), (CallModel(wait),))
    full = event.kind is ModelFailure.CONTEXT_FULL
    reason = FinishReason.CONTEXT_FULL if full else FinishReason.FAILED
    failed = replace(state, model_failures=failures, detail=event.detail or str(event.kind))
    return Step(_finished(failed, reason), (Finish(reason),))


# --- judging ---------------------------------------------------------------------------------------------------


def _on_judged(state: RunState, event: Judged) -> Step:
    call = cast(Call, state.call(event.call_id))
    state = state.with_call(_judge(call, event))
    if any(state.in_phase(C.PROPOSED)):
        return Step(state)
    verdicts_end = _judged_to_end(state)
    if verdicts_end is not None:
        return _close(replace(state, phase=P.ACTING), verdicts_end)
    return _begin(replace(state, phase=P.ACTING))


def _judge(call: Call, event: Judged) -> Call:
    match event.verdict:
        case Execute(action=action, sentence=sentence, redact=redact):
            return replace(call, phase=C.ALLOWED, action=action, sentence=sentence, redact=redact)
        case Hold(ask=ask, action=action, sentence=sentence, redact=redact):
            return replace(call, phase=C.HELD, ask=ask, action=action, sentence=sentence, redact=redact)
        case Deny(tell=tell):
            return replace(_settle(call, told.denied(tell), ResultStatus.DENIED), halts=event.verdict.halt)
        case Refuse(code=code, problem=problem):
            return _settle(call, told.refused(code, problem), ResultStatus.ERROR)
        case _:
            assert_never(event.verdict)


def _judged_to_end(state: RunState) -> FinishReason | None:
    """Whether a verdict alone ends the run, before anyone is asked or anything runs."""
    if any(call.halts for call in state.calls):
        return FinishReason.HALTED
    if state.rules.on_decline == "stop" and any(map(_denied, state.calls)):
        return FinishReason.DENIED
    return None


def _denied(call: Call) -> bool:
    return call.result is not None and call.result.status is ResultStatus.DENIED


def _begin(state: RunState) -> Step:
    """Every call of the reply is judged: open the asks, start what is allowed."""
    commands: list[Command] = []
    for call in tuple(state.in_phase(C.HELD, C.ALLOWED)):
        started, command = _open(state, call, call.ask) if call.ask else _start(state, call)
        state = state.with_call(started)
        commands.append(command)
    return _go_on(state, commands)


def _open(state: RunState, call: Call, ask: AnyAsk) -> tuple[Call, Command]:
    """Put an ask to people. Input requests are kept in the call, since answers are merged into them."""
    key = AskKey(f"{state.turn}-{call.place}-{call.asks}")
    ask = replace(ask, key=key)
    kept = ask if isinstance(ask, InputRequest) else None
    opened = replace(call, phase=_OPEN_PHASES[ask.kind], ask_key=key, ask=kept, asks=call.asks + 1)
    return opened, OpenAsk(call.id, ask)


_OPEN_PHASES: Mapping[str, CallPhase] = {
    "check_in": C.WAITING,
    "question": C.ASKING,
    "input_request": C.COLLECTING,
    "outcome_question": C.UNKNOWN,
}


def _start(state: RunState, call: Call) -> tuple[Call, Command]:
    """Start an attempt. Its number tells attempts of one call apart; the idempotency key is the call's."""
    number = len(call.attempts) + 1
    base = f"{state.run_id}:{state.turn}-{call.place}"
    attempt = Attempt(AttemptId(f"{base}:{number}"), number, base)
    running = replace(call, phase=C.RUNNING, ask_key=None, ask=None, attempts=(*call.attempts, attempt))
    return running, RunTool(call.id, attempt)


# --- people ----------------------------------------------------------------------------------------------------


def _on_decided(state: RunState, event: Decided) -> Step:
    call = cast(Call, state.call(event.call_id))
    decision = with_note_cut(event.decision)
    match decision, call.phase:
        case Approved(), C.WAITING:
            action, sentence = event.action or call.action, event.sentence or call.sentence
            return _authorize(state, replace(call, approved=decision, action=action, sentence=sentence))
        case Declined(), C.WAITING:
            return _decline(state, call, decision)
        case Answered(), C.ASKING:
            return _end_call(state, call, _as_text(decision.answer), ResultStatus.OK)
        case InputCancelled(), C.COLLECTING:
            check_cancel(cast(InputRequest, call.ask), decision)
            ended = state.with_call(_settle(call, told.input_cancelled(), ResultStatus.CANCELLED))
            return _close(ended, FinishReason.CANCELLED)
        case Happened(), C.UNKNOWN:
            return _end_call(state, call, told.happened(decision), ResultStatus.OK)
        case RunAgain(), C.UNKNOWN:
            return _run_again(state, call, decision)
        case GivenUp(), C.UNKNOWN:
            given_up = _settle(call, told.NOT_KNOWN, ResultStatus.UNKNOWN)
            return _close(replace(state.with_call(given_up), stopped_by=decision.by), FinishReason.CANCELLED)
        case _:
            raise IllegalEvent(f"a call that is {call.phase} is not answered by {type(decision).__name__}")


def _authorize(state: RunState, call: Call) -> Step:
    running, command = _start(state, call)
    return Step(state.with_call(running), (command,))


def _decline(state: RunState, call: Call, decision: Declined) -> Step:
    settled = _settle(call, told.declined(decision.note), ResultStatus.DECLINED)
    if state.rules.on_decline == "stop":
        return _close(state.with_call(settled), FinishReason.DENIED)
    return _go_on(state.with_call(settled), [])


def _run_again(state: RunState, call: Call, decision: RunAgain) -> Step:
    """A new approval of the same digest. A run that is closing runs nothing more."""
    if state.phase is P.CLOSING:
        return _end_call(state, call, told.did_not_happen(), ResultStatus.CANCELLED)
    edited = call.approved.arguments if call.approved else None
    approved = Approved(by=decision.by, note=decision.note, assurance=decision.assurance, arguments=edited)
    return _authorize(state, replace(call, approved=approved))


def _on_answer(state: RunState, event: AnswerReceived) -> Step:
    """Merge an answer to an input request. Raises InputRequestError for a bad one."""
    call = cast(Call, state.call(event.call_id))
    request = accept(cast(InputRequest, call.ask), event.reply)
    if request.missing:
        return Step(state.with_call(replace(call, ask=request)))
    collected = replace(call, phase=C.COLLECTED, ask=request, ask_key=None)
    return Step(state.with_call(collected), (Conclude(call.id),))


def _on_expired(state: RunState, event: Expired) -> Step:
    call = cast(Call, state.call(event.call_id))
    asked = {C.ASKING: "question", C.COLLECTING: "input_request"}.get(call.phase, "check_in")
    settled = state.with_call(_settle(call, told.expired(asked), ResultStatus.EXPIRED))
    return _close(settled, FinishReason.EXPIRED) if state.rules.on_expiry == "stop" else _go_on(settled, [])


def _on_withdrawn(state: RunState, event: Withdrawn) -> Step:
    call = cast(Call, state.call(event.call_id))
    return _end_call(state, call, told.withdrawn(), ResultStatus.CANCELLED)


def _on_stop(state: RunState, event: StopRequested) -> Step:
    """Stop: what waits is closed, what was started is waited for, what is unknown stays unknown."""
    state = replace(state, stopped_by=event.by)
    if state.phase in (P.READY, P.THINKING):
        return Step(_finished(state, FinishReason.CANCELLED), (Finish(FinishReason.CANCELLED),))
    commands: list[Command] = []
    for call in tuple(state.in_phase(C.UNKNOWN)):
        state = state.with_call(_settle(call, told.NOT_KNOWN, ResultStatus.UNKNOWN))
        commands.append(CloseAsk(call.id, cast(AskKey, call.ask_key)))
    return _close(state, FinishReason.CANCELLED, commands)


# --- tools -----------------------------------------------------------------------------------------------------


def _on_returned(state: RunState, event: ToolReturned) -> Step:
    call = cast(Call, state.call(event.call_id))
    return _end_call(state, call, event.content + told.provenance(call), ResultStatus.OK)


def _on_raised(state: RunState, event: ToolRaised) -> Step:
    call = cast(Call, state.call(event.call_id))
    if not event.executed:
        return _end_call(state, call, told.refused("NOT_EXECUTED", event.error), ResultStatus.ERROR)
    return _end_call(state, call, told.raised(event.error) + told.provenance(call), ResultStatus.ERROR)


def _on_settled(state: RunState, event: Settled) -> Step:
    """A result that was found on recovery or came late. An open outcome question is superseded by it."""
    call = cast(Call, state.call(event.call_id))
    closing = [CloseAsk(call.id, call.ask_key)] if call.ask_key else []
    settled = _settle(call, event.content + told.provenance(call), event.status)
    return _go_on(state.with_call(settled), [*closing])


def _on_input_asked(state: RunState, event: InputAsked) -> Step:
    call = cast(Call, state.call(event.call_id))
    if state.phase is P.CLOSING:
        reason = cast(FinishReason, state.closing)
        return _end_call(state, call, told.skipped(reason), ResultStatus.SKIPPED)
    opened, command = _open(state, call, event.request)
    return Step(state.with_call(opened), (command,))


def _on_unknown(state: RunState, event: OutcomeUnknown) -> Step:
    """An attempt without a result. Only an idempotent tool may simply run again."""
    call = cast(Call, state.call(event.call_id))
    if event.idempotent and len(call.attempts) < MAX_IDEMPOTENT_ATTEMPTS and state.phase is not P.CLOSING:
        return _authorize(state, call)
    if event.idempotent:
        return _end_call(state, call, told.unanswered(len(call.attempts)), ResultStatus.UNKNOWN)
    question = OutcomeQuestion(
        key=AskKey(""),
        call_id=call.id,
        action=cast(Action, call.action),
        question=call.sentence,
        attempt_id=event.attempt_id,
        safe=event.safe,
        redact=call.redact,
    )
    opened, command = _open(state, call, question)
    return Step(state.with_call(opened), (command,))


# --- what follows ----------------------------------------------------------------------------------------------


def _end_call(state: RunState, call: Call, content: str, status: ResultStatus) -> Step:
    return _go_on(state.with_call(_settle(call, content, status)), [])


def _settle(call: Call, content: str, status: ResultStatus) -> Call:
    result = ToolResult(call.id, call.tool, content, status)
    return replace(call, phase=C.SETTLED, ask=None, ask_key=None, result=result)


def _go_on(state: RunState, commands: Iterable[Command]) -> Step:
    """After a change to a call: stay while any is open, else hand the results to the model, or finish."""
    if any(call.phase is not C.SETTLED for call in state.calls):
        return Step(state, tuple(commands))
    results = ResultsMessage(tuple(cast(ToolResult, call.result) for call in state.calls))
    if state.closing is not None:
        finished = _finished(state, state.closing)
        return Step(finished, (*commands, Finish(state.closing)), (results,))
    return _think_again(state, (results,), commands)


def _think_again(
    state: RunState,
    messages: tuple[UserMessage | AssistantMessage | ResultsMessage, ...],
    commands: Iterable[Command] = (),
) -> Step:
    if state.turn >= state.rules.max_turns:
        finished = _finished(state, FinishReason.MAX_TURNS)
        return Step(finished, (*commands, Finish(FinishReason.MAX_TURNS)), messages)
    return Step(replace(state, phase=P.THINKING, calls=(), intent=""), (*commands, CallModel()), messages)


def _close(state: RunState, reason: FinishReason, commands: Iterable[Command] = ()) -> Step:
    """End the run: skip what has not started, close its asks, wait for what has."""
    status = ResultStatus.CANCELLED if reason is FinishReason.CANCELLED else ResultStatus.SKIPPED
    closed: list[Command] = [*commands]
    for call in tuple(state.in_phase(*_NOT_STARTED)):
        if call.ask_key:
            closed.append(CloseAsk(call.id, call.ask_key))
        state = state.with_call(_settle(call, told.skipped(reason), status))
    return _go_on(replace(state, phase=P.CLOSING, closing=state.closing or reason), closed)


_NOT_STARTED = (C.PROPOSED, C.ALLOWED, C.HELD, C.WAITING, C.ASKING, C.COLLECTING, C.COLLECTED)


def _finished(state: RunState, reason: FinishReason) -> RunState:
    return replace(state, phase=P.FINISHED, finish=reason, calls=(), closing=None)


def _as_text(answer: object) -> str:
    return answer if isinstance(answer, str) else told.as_json(answer)


_HANDLERS: Mapping[type[Event], Callable[[RunState, Any], Step]] = {
    MessageReceived: _on_message,
    ModelReplied: _on_reply,
    ModelFailed: _on_model_failure,
    Judged: _on_judged,
    Decided: _on_decided,
    AnswerReceived: _on_answer,
    Expired: _on_expired,
    Withdrawn: _on_withdrawn,
    StopRequested: _on_stop,
    ToolReturned: _on_returned,
    ToolRaised: _on_raised,
    InputAsked: _on_input_asked,
    OutcomeUnknown: _on_unknown,
    Settled: _on_settled,
}
