"""The loop: what each event leads to, and that every pair that the tables do not list changes nothing."""

from __future__ import annotations

import itertools

import pytest

from agent.decision import (
    Answered,
    AnyDecision,
    Approved,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    InputReceived,
    RunAgain,
)
from agent.ids import AskKey, AttemptId
from agent.input_request import InputRequestError
from agent.loop import MAX_MODEL_FAILURES, IllegalEvent, advance, pending
from agent.messages import ResultsMessage, ResultStatus, check_pairing
from agent.model import ModelFailure, StopReason
from agent.moves import (
    AnswerReceived,
    CallModel,
    CloseAsk,
    Conclude,
    Decided,
    Deny,
    Event,
    Expired,
    Finish,
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
from agent.run import CallPhase, FinishReason, PauseReason, Phase, Rules, dump_state, load_state
from agent.transitions import CALL_TABLE, RUN_TABLE
from tests.support.runs import Run, action, consenting, executing, input_request, questioning, reply

STOP = Rules(on_decline="stop", on_expiry="stop")


def running(rules: Rules | None = None) -> Run:
    return Run(rules).begin().propose("t").judge([("t", executing())])


def waiting(rules: Rules | None = None) -> Run:
    return Run(rules).begin().propose("t").judge([("t", consenting("t"))])


def asking() -> Run:
    return Run().begin().propose("t").judge([("t", questioning("t"))])


def collecting(rules: Rules | None = None) -> Run:
    run = running(rules)
    run.take(InputAsked(call_id="t", attempt_id=AttemptId(run.attempt("t")), request=input_request("t")))
    return run


def collected() -> Run:
    run = collecting()
    values = {"due": "friday", "amount": 3}
    run.take(
        AnswerReceived(
            call_id="t", ask_key=run.key("t"), reply=InputReceived(by="a", request_id="in_1", values=values)
        )
    )
    return run


def unknown(rules: Rules | None = None) -> Run:
    run = running(rules)
    run.take(OutcomeUnknown(call_id="t", attempt_id=AttemptId(run.attempt("t")), idempotent=False, safe=True))
    return run


def proposed() -> Run:
    return Run().begin().propose("t", "u")


def settled() -> Run:
    run = Run().begin().propose("t", "u").judge([("t", executing()), ("u", executing())])
    run.take(ToolReturned(call_id="t", attempt_id=AttemptId(run.attempt("t")), content="done"))
    return run


def closing() -> Run:
    run = running()
    run.take(StopRequested(by="ann"))
    return run


def finished() -> Run:
    run = Run().begin()
    run.take(ModelReplied(reply=reply(text="bye")))
    return run


RUNS = {
    Phase.READY: Run,
    Phase.THINKING: lambda: Run().begin(),
    Phase.JUDGING: proposed,
    Phase.ACTING: running,
    Phase.CLOSING: closing,
    Phase.FINISHED: finished,
}
CALLS = {
    CallPhase.PROPOSED: proposed,
    CallPhase.WAITING: waiting,
    CallPhase.ASKING: asking,
    CallPhase.RUNNING: running,
    CallPhase.COLLECTING: collecting,
    CallPhase.COLLECTED: collected,
    CallPhase.UNKNOWN: unknown,
    CallPhase.SETTLED: settled,
}


def every_event(run: Run) -> dict[type[Event], Event]:
    """One well-formed event of each type, about call `t` as it stands."""
    call = run.state.call("t")
    key = call.ask_key if call and call.ask_key else AskKey("1-0-0")
    attempt = call.attempt.id if call and call.attempt else AttemptId("x")
    given = InputReceived(by="ann", request_id="in_1", values={"due": "friday"})
    return {
        MessageReceived: MessageReceived(text="hi"),
        ModelReplied: ModelReplied(reply=reply(text="x")),
        ModelFailed: ModelFailed(kind=ModelFailure.OVERLOADED),
        StopRequested: StopRequested(by="ann"),
        Judged: Judged(call_id="t", verdict=executing()),
        Decided: Decided(call_id="t", ask_key=key, decision=_decision(call.phase if call else None)),
        AnswerReceived: AnswerReceived(call_id="t", ask_key=key, reply=given),
        Expired: Expired(call_id="t", ask_key=key),
        Withdrawn: Withdrawn(call_id="t", ask_key=key),
        ToolReturned: ToolReturned(call_id="t", attempt_id=attempt, content="x"),
        ToolRaised: ToolRaised(call_id="t", attempt_id=attempt, error="x"),
        InputAsked: InputAsked(call_id="t", attempt_id=attempt, request=input_request("t")),
        OutcomeUnknown: OutcomeUnknown(call_id="t", attempt_id=attempt, idempotent=False, safe=False),
        Settled: Settled(call_id="t", attempt_id=attempt, content="x", status=ResultStatus.OK),
    }


def _decision(phase: CallPhase | None) -> AnyDecision:
    match phase:
        case CallPhase.ASKING:
            return Answered(by="ann", answer="x")
        case CallPhase.COLLECTING:
            return InputCancelled(by="ann", request_id="in_1")
        case CallPhase.UNKNOWN:
            return Happened(by="ann")
        case _:
            return Approved(by="ann")


def test_every_event_type_is_in_the_pairs() -> None:
    assert set(every_event(Run())) == {type_ for row in RUN_TABLE.values() for type_ in row}


@pytest.mark.parametrize("phase", list(Phase))
def test_a_run_takes_exactly_the_events_of_its_table(phase: Phase) -> None:
    for type_ in every_event(RUNS[phase]()):
        run = RUNS[phase]()
        assert run.state.phase is phase
        before = run.state
        event = every_event(run)[type_]
        listed = type_ in RUN_TABLE[phase]
        addressed = run.state.call("t") is None or type_ in CALL_TABLE[run.state.call("t").phase]
        if listed and (addressed or not hasattr(event, "call_id")):
            assert run.take(event).state.phase in RUN_TABLE[phase][type_], f"{phase} + {type_.__name__}"
        else:
            with pytest.raises(IllegalEvent):
                advance(before, event)
            assert run.state is before


@pytest.mark.parametrize("phase", list(CALLS))
def test_a_call_takes_exactly_the_events_of_its_table(phase: CallPhase) -> None:
    for type_, _ in every_event(Run()).items():
        run = CALLS[phase]()
        event = every_event(run)[type_]
        if not hasattr(event, "call_id"):
            continue
        call = run.state.call("t")
        assert call is not None
        assert call.phase is phase
        if type_ in CALL_TABLE[phase]:
            after = run.take(event).state.call("t")
            assert after is None or after.phase in CALL_TABLE[phase][type_], f"{phase} + {type_.__name__}"
        else:
            with pytest.raises(IllegalEvent):
                advance(run.state, event)


def test_a_message_calls_the_model() -> None:
    run = Run().begin()
    assert run.commands == [CallModel()]
    assert run.state.phase is Phase.THINKING


def test_every_call_of_a_reply_is_judged_before_anything_starts() -> None:
    run = Run().begin().propose("a", "b", "c", "d")
    assert run.commands == [Judge("a"), Judge("b"), Judge("c"), Judge("d")]
    run.judge([("a", executing()), ("b", consenting("b")), ("c", Deny(tell="no"))])
    assert run.commands == []
    run.judge([("d", consenting("d"))])
    assert [type(c) for c in run.commands] == [RunTool, OpenAsk, OpenAsk]


def test_results_are_one_message_in_the_order_of_the_calls() -> None:
    run = Run().begin().propose("a", "b").judge([("a", consenting("a")), ("b", consenting("b"))])
    for call in ("b", "a"):
        run.take(Decided(call_id=call, ask_key=run.key(call), decision=Approved(by="ann")))
    for call in ("b", "a"):
        run.take(ToolReturned(call_id=call, attempt_id=AttemptId(run.attempt(call)), content=f"did {call}"))
    last = run.transcript[-1]
    assert isinstance(last, ResultsMessage)
    assert [result.content for result in last.results] == ["did a", "did b"]
    check_pairing(run.transcript)


def test_an_approved_call_starts_while_its_sibling_waits() -> None:
    run = Run().begin().propose("a", "b").judge([("a", consenting("a")), ("b", consenting("b"))])
    run.take(Decided(call_id="a", ask_key=run.key("a"), decision=Approved(by="ann")))
    assert [type(c) for c in run.commands] == [RunTool]
    assert run.state.pause is None
    run.take(ToolReturned(call_id="a", attempt_id=AttemptId(run.attempt("a")), content="x"))
    assert run.state.pause is PauseReason.PENDING_APPROVAL


def test_a_decline_is_told_to_the_model_and_the_loop_goes_on() -> None:
    run = waiting()
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=Declined(by="bob", note="not this week")))
    assert run.commands == [CallModel()]
    result = run.transcript[-1].results[0]  # type: ignore[union-attr]
    assert result.content.startswith("declined by human: not this week")
    assert "Nothing was executed" in result.content
    assert result.status is ResultStatus.DECLINED


def test_under_stop_a_decline_skips_the_siblings_and_ends_the_run() -> None:
    run = Run(STOP).begin().propose("a", "b", "c")
    run.judge([("a", consenting("a")), ("b", consenting("b")), ("c", executing())])
    key_b = run.key("b")
    run.take(Decided(call_id="a", ask_key=run.key("a"), decision=Declined(by="bob")))
    assert CloseAsk("b", key_b) in run.commands
    assert run.state.phase is Phase.CLOSING, "c is still running"
    run.take(ToolReturned(call_id="c", attempt_id=AttemptId(run.attempt("c")), content="did c"))
    assert run.state.finish is FinishReason.DENIED
    statuses = [r.status for r in run.transcript[-1].results]  # type: ignore[union-attr]
    assert statuses == [ResultStatus.DECLINED, ResultStatus.SKIPPED, ResultStatus.OK]
    check_pairing(run.transcript)


def test_under_stop_a_denial_opens_no_ask_and_runs_nothing() -> None:
    run = Run(STOP).begin().propose("a", "b", "c")
    run.judge([("a", consenting("a")), ("b", executing()), ("c", Deny(tell=""))])
    assert run.commands == [Finish(FinishReason.DENIED)]
    check_pairing(run.transcript)


def test_a_halt_ends_the_run_and_keeps_its_reason_from_the_model() -> None:
    run = Run().begin().propose("a", "b").judge([("a", Deny(tell="", halt=True)), ("b", executing())])
    assert run.commands == [Finish(FinishReason.HALTED)]
    assert run.transcript[-1].results[0].content.startswith("denied by policy")  # type: ignore[union-attr]


def test_invalid_arguments_are_told_and_siblings_run() -> None:
    run = Run(STOP).begin().propose("a", "b")
    run.judge([("a", Refuse(code="INVALID_ARGUMENTS", problem="amount: a number")), ("b", executing())])
    assert [type(c) for c in run.commands] == [RunTool]


def test_an_expiry_names_nobody() -> None:
    run = waiting()
    run.take(Expired(call_id="t", ask_key=run.key("t")))
    content = run.transcript[-1].results[0].content  # type: ignore[union-attr]
    assert content.startswith("not executed: nobody decided in time")
    run = waiting(STOP)
    run.take(Expired(call_id="t", ask_key=run.key("t")))
    assert run.state.finish is FinishReason.EXPIRED


def test_an_edit_tells_the_model_what_ran_and_who_changed_it() -> None:
    run = waiting()
    edited = action(amount=4200)
    approved = Approved(by="ann", arguments={"amount": 4200}, note="cap")
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=approved, action=edited))
    run.take(ToolReturned(call_id="t", attempt_id=AttemptId(run.attempt("t")), content="refunded 4200"))
    content = run.transcript[-1].results[0].content  # type: ignore[union-attr]
    assert content.startswith("refunded 4200")
    assert "ann changed the arguments" in content
    assert '{"amount":4200}' in content


def test_a_partial_answer_pauses_again_with_its_values_kept() -> None:
    run = collecting()
    key = run.key("t")
    given = InputReceived(by="ann", request_id="in_1", values={"due": "friday"})
    run.take(AnswerReceived(call_id="t", ask_key=key, reply=given))
    assert run.commands == []
    assert run.key("t") == key
    assert run.state.pause is PauseReason.AWAITING_INPUT
    rest = InputReceived(by="ann", request_id="in_1", values={"amount": 3})
    run.take(AnswerReceived(call_id="t", ask_key=key, reply=rest))
    assert run.commands == [Conclude("t")]
    assert run.state.call("t").ask.values == {"due": "friday", "amount": 3}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "bad",
    [
        InputReceived(by="a", request_id="in_0", values={"due": "x"}),
        InputReceived(by="a", request_id="in_1", values={"when": "x"}),
        InputReceived(by="a", request_id="in_1", values={"amount": "3"}),
        InputReceived(by="a", request_id="in_1", values={"amount": True}),
        InputReceived(by="a", request_id="in_1", values={"due": ""}),
        InputReceived(by="a", request_id="in_1", values={}),
    ],
)
def test_a_bad_answer_is_refused_and_the_request_stays_open(bad: InputReceived) -> None:
    run = collecting()
    before = run.state
    with pytest.raises(InputRequestError):
        run.take(AnswerReceived(call_id="t", ask_key=run.key("t"), reply=bad))
    assert run.state is before


def test_cancelling_an_input_request_ends_the_run_without_a_model_call() -> None:
    run = collecting()
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=InputCancelled(by="a", request_id="in_1")))
    assert run.state.finish is FinishReason.CANCELLED
    assert "input_cancelled" in run.transcript[-1].results[0].content  # type: ignore[union-attr]
    check_pairing(run.transcript)


def test_an_unknown_outcome_opens_a_question_only_for_tools_that_may_not_repeat() -> None:
    run = unknown()
    assert [type(c) for c in run.commands] == [OpenAsk]
    assert run.state.call("t").phase is CallPhase.UNKNOWN  # type: ignore[union-attr]
    run = running()
    keys = set()
    for _ in range(2):
        attempt = run.state.call("t").attempt  # type: ignore[union-attr]
        assert attempt is not None
        keys.add(attempt.idempotency_key)
        run.take(OutcomeUnknown(call_id="t", attempt_id=attempt.id, idempotent=True, safe=False))
        assert [type(c) for c in run.commands] == [RunTool]
    assert len(keys) == 1, "every attempt carries the same idempotency key"
    run.take(OutcomeUnknown(call_id="t", attempt_id=AttemptId(run.attempt("t")), idempotent=True, safe=False))
    assert run.commands == [CallModel()]


def test_the_answers_to_an_outcome_question() -> None:
    run = unknown()
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=Happened(by="ann", note="saw it")))
    assert run.transcript[-1].results[0].ok  # type: ignore[union-attr]
    run = unknown()
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=RunAgain(by="ann")))
    assert [type(c) for c in run.commands] == [RunTool]
    assert run.attempt("t").endswith(":2")
    run = unknown()
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=GivenUp(by="ann")))
    assert run.state.finish is FinishReason.CANCELLED
    assert run.transcript[-1].results[0].status is ResultStatus.UNKNOWN  # type: ignore[union-attr]


def test_a_late_result_supersedes_the_outcome_question() -> None:
    run = unknown()
    key = run.key("t")
    attempt = AttemptId(run.attempt("t"))
    run.take(Settled(call_id="t", attempt_id=attempt, content="refunded", status=ResultStatus.OK))
    assert run.commands[0] == CloseAsk("t", key)
    assert run.transcript[-1].results[0].content == "refunded"  # type: ignore[union-attr]


def test_a_result_of_an_earlier_attempt_does_not_count() -> None:
    run = unknown()
    first = AttemptId(run.attempt("t"))
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=RunAgain(by="ann")))
    with pytest.raises(IllegalEvent, match="not the latest attempt"):
        run.take(Settled(call_id="t", attempt_id=first, content="late", status=ResultStatus.OK))


def test_a_stop_waits_for_what_runs_and_closes_what_waits() -> None:
    run = Run().begin().propose("a", "b").judge([("a", executing()), ("b", consenting("b"))])
    key = run.key("b")
    run.take(StopRequested(by="ann"))
    assert run.commands == [CloseAsk("b", key)]
    assert run.state.phase is Phase.CLOSING
    run.take(ToolReturned(call_id="a", attempt_id=AttemptId(run.attempt("a")), content="x"))
    assert run.state.finish is FinishReason.CANCELLED
    assert run.state.stopped_by == "ann"
    check_pairing(run.transcript)


def test_a_run_that_is_closing_runs_nothing_again() -> None:
    run = closing()
    attempt = AttemptId(run.attempt("t"))
    run.take(OutcomeUnknown(call_id="t", attempt_id=attempt, idempotent=False, safe=True))
    assert [type(c) for c in run.commands] == [OpenAsk]
    run.take(Decided(call_id="t", ask_key=run.key("t"), decision=RunAgain(by="ann")))
    assert run.commands == [Finish(FinishReason.CANCELLED)]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (StopReason.MAX_TOKENS, FinishReason.TRUNCATED),
        (StopReason.REFUSAL, FinishReason.REFUSED),
        (StopReason.CONTEXT_FULL, FinishReason.CONTEXT_FULL),
    ],
)
def test_a_reply_that_ends_early_has_none_of_its_calls_judged(stop: StopReason, reason: FinishReason) -> None:
    run = Run().begin()
    run.take(ModelReplied(reply=reply("a", "b", text="so", stop=stop)))
    assert run.commands == [Finish(reason)]
    check_pairing(run.transcript)


def test_pause_turn_calls_again_and_counts_as_a_turn() -> None:
    run = Run(Rules(max_turns=2)).begin()
    run.take(ModelReplied(reply=reply(text="hm", stop=StopReason.PAUSE_TURN)))
    assert run.commands == [CallModel()]
    run.take(ModelReplied(reply=reply(text="hm", stop=StopReason.PAUSE_TURN)))
    assert run.state.finish is FinishReason.MAX_TURNS


def test_model_failures_back_off_and_then_end_the_run() -> None:
    run = Run().begin()
    delays = []
    for _ in range(MAX_MODEL_FAILURES - 1):
        run.take(ModelFailed(kind=ModelFailure.OVERLOADED))
        delays.append(run.commands[0].delay)  # type: ignore[attr-defined]
    assert delays == sorted(delays)
    assert delays[0] > 0
    run.take(ModelFailed(kind=ModelFailure.OVERLOADED))
    assert run.state.finish is FinishReason.FAILED
    run = Run().begin()
    run.take(ModelFailed(kind=ModelFailure.RATE_LIMITED, retry_after=7.0))
    assert run.commands == [CallModel(7.0)]
    run = Run().begin()
    run.take(ModelFailed(kind=ModelFailure.UNAUTHORIZED))
    assert run.state.finish is FinishReason.FAILED


def test_at_most_64_calls_of_a_reply_are_considered() -> None:
    run = Run().begin().propose(*(f"c{i}" for i in range(70)))
    assert len(run.commands) == 64
    run.judge([(f"c{i}", Deny(tell="no")) for i in range(64)])
    assert len(run.transcript[-1].results) == 70  # type: ignore[union-attr]


def test_one_id_used_twice_in_a_reply_fails_the_run() -> None:
    run = Run().begin().propose("a", "a")
    assert run.state.finish is FinishReason.FAILED
    check_pairing(run.transcript)


def test_two_asks_of_one_call_have_different_keys() -> None:
    run = waiting()
    first = run.key("t")
    run.take(Decided(call_id="t", ask_key=first, decision=Approved(by="ann")))
    run.take(
        OutcomeUnknown(call_id="t", attempt_id=AttemptId(run.attempt("t")), idempotent=False, safe=False)
    )
    assert run.key("t") != first


@pytest.mark.parametrize("make", [*RUNS.values(), *CALLS.values()])
def test_a_state_survives_its_json(make: object) -> None:
    state = make().state  # type: ignore[operator]
    assert load_state(dump_state(state)) == state


def test_what_a_loaded_state_has_to_do() -> None:
    assert pending(Run().begin().state) == (CallModel(),)
    assert pending(proposed().state) == (Judge("t"), Judge("u"))
    assert pending(collected().state) == (Conclude("t"),)
    for make, _ in itertools.product((waiting, running, unknown, finished), (0,)):
        assert pending(make().state) == ()
