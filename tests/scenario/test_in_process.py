"""The contract's scenarios that need no gateway: an agent, run and resumed in one process or from its JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from agent.action import Difference, capture
from agent.agent import Agent
from agent.approval import Approval, RefusalCode, Staleness, admit
from agent.canonical import NotFaithful
from agent.checkin import CheckIn
from agent.decision import (
    Answered,
    Approved,
    DeciderMissing,
    DecisionRequiredError,
    Declined,
    InputCancelled,
    InputReceived,
)
from agent.events import PolicyFailure
from agent.input_request import InputField, InputRequest, InputRequestError, request_input
from agent.messages import ResultsMessage, ResultStatus
from agent.middleware import Allow, AskPerson, Middleware
from agent.policy import PolicyAllow, PolicyDeny
from agent.recorder import CheckInRecorder
from agent.run import FinishReason, PauseReason
from agent.runner import Finished, Paused
from agent.tools import CheckInContext, tool
from tests.support.office import Model, calls, first_calls, says
from tests.support.scenarios import scenario

REFUND = ("refund", {"order": "A-1", "amount": 5000})


class Till:
    """Remembers what was paid out, and brings an agent that pays."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.collected = 0

    def agent(self, model: Model | None = None, *, check_in: Any = "always", **options: Any) -> Agent:
        @tool(ask="Refund {amount} on order {order}?", check_in=check_in)
        def refund(order: str, amount: int) -> str:
            """Refund an order."""
            self.paid.append(amount)
            return f"refunded {amount}"

        @tool
        def look() -> str:
            """Look something up."""
            return "looked"

        @tool
        def collect() -> object:
            """Collect what is missing."""
            self.collected += 1
            fields = [InputField("due"), InputField("count", "number"), InputField("size", enum=("S", "M"))]
            return request_input("more", "Three details?", fields, supplied={"size": "S"})

        return Agent(
            name="refunds",
            model=model or first_calls(REFUND),
            tools=[refund, look, collect],
            **options,
        )


@pytest.fixture
def till() -> Till:
    return Till()


async def paused(agent: Agent, message: str = "refund A-1, it arrived broken") -> Paused:
    outcome = await agent.run(message)
    assert isinstance(outcome, Paused), outcome
    return outcome


async def finished(agent: Agent, checkpoint: str, decision: object) -> Finished:
    outcome = await agent.resume(checkpoint, decision)
    assert isinstance(outcome, Finished), outcome
    return outcome


def results(outcome: Finished) -> list[Any]:
    return [r for m in outcome.transcript if isinstance(m, ResultsMessage) for r in m.results]


@scenario(1, "always: pauses before executing, with full evidence")
async def test_always(till: Till) -> None:
    outcome = await paused(till.agent(system="Refund only broken orders."))
    (ask,) = outcome.asks
    assert isinstance(ask, CheckIn)
    assert outcome.reason is PauseReason.PENDING_APPROVAL
    assert till.paid == []
    assert set(ask.evidence) >= {"will_do", "read", "drivers", "trail"}
    assert ask.evidence["drivers"]


@scenario(2, "predicate false: runs, zero events")
async def test_predicate_false(till: Till) -> None:
    recorder = CheckInRecorder()
    agent = till.agent(check_in=lambda args, context: args["amount"] > 9000)
    agent.attach(recorder)
    outcome = await agent.run("refund")
    assert isinstance(outcome, Finished)
    assert till.paid == [5000]
    assert not recorder.requests()


@scenario(3, "predicate raises: asks")
async def test_predicate_raises(till: Till) -> None:
    def broken(args: dict[str, Any], context: CheckInContext) -> bool:
        raise RuntimeError("no")

    await paused(till.agent(check_in=broken))
    assert till.paid == []


@scenario(4, "policy deny: no card")
async def test_policy_denies(till: Till) -> None:
    outcome = await till.agent(policy=lambda request: PolicyDeny(tell_llm="not on Sundays")).run("refund")
    assert isinstance(outcome, Finished)
    assert results(outcome)[0].content.startswith("not on Sundays")
    assert results(outcome)[0].status is ResultStatus.DENIED
    assert till.paid == []


@scenario(5, "policy checker raises: denied; the text is hidden from the model")
async def test_policy_raises(till: Till) -> None:
    def broken(request: object) -> PolicyDeny:
        raise RuntimeError("the password is hunter2")

    events: list[object] = []
    agent = till.agent(policy=broken)
    agent.attach(events.append)
    outcome = await agent.run("refund")
    assert isinstance(outcome, Finished)
    assert results(outcome)[0].content.startswith("denied by policy")
    assert "hunter2" not in repr(outcome.transcript)
    assert any(isinstance(event, PolicyFailure) and "hunter2" in event.detail for event in events)


@scenario(6, "approve from JSON with an agent made anew: the tool runs once")
async def test_resume_elsewhere(till: Till) -> None:
    outcome = await paused(till.agent())
    elsewhere = Till()
    ended = await finished(elsewhere.agent(), json.dumps(json.loads(outcome.checkpoint)), Approved(by="ann"))
    assert ended.reason is FinishReason.END_TURN
    assert (till.paid, elsewhere.paid) == ([], [5000])


@scenario(7, "decline with a note: the model sees it and adapts")
async def test_decline(till: Till) -> None:
    agent = till.agent()
    outcome = await paused(agent)
    ended = await finished(agent, outcome.checkpoint, Declined(by="bob", note="not this week"))
    assert ended.text.startswith("declined by human: not this week")
    assert till.paid == []


@scenario(8, "a bare string to a gate: typed error, no content echoed, still answerable")
async def test_bare_string(till: Till) -> None:
    agent = till.agent()
    outcome = await paused(agent)
    with pytest.raises(DecisionRequiredError) as refused:
        await agent.resume(outcome.checkpoint, "yes, hunter2")
    assert "hunter2" not in str(refused.value)
    assert refused.value.received == "a string"
    assert refused.value.code == "ERR_DECISION_REQUIRED"
    await finished(agent, outcome.checkpoint, Approved(by="ann"))
    assert till.paid == [5000]


@scenario(9, "blank `by`: refused")
def test_blank_by() -> None:
    with pytest.raises(DeciderMissing):
        Approved(by="  ")


@scenario(10, "minimal evidence: only will_do, and the scorer is never called")
async def test_minimal(till: Till) -> None:
    outcome = await paused(till.agent(evidence="minimal"))
    (ask,) = outcome.asks
    assert isinstance(ask, CheckIn)
    assert set(ask.evidence) == {"will_do"}


@scenario(11, "same input, same drivers; Chinese text has non-zero drivers")
async def test_drivers(till: Till) -> None:
    message = "请退款订单 A-1,商品破损"

    async def drivers() -> Any:
        model = first_calls(("refund", {"order": "订单破损", "amount": 5}))
        (ask,) = (await paused(till.agent(model), message)).asks
        assert isinstance(ask, CheckIn)
        return ask.evidence["drivers"]

    first, second = await drivers(), await drivers()
    assert first == second
    assert first[0]["score"] > 0


@scenario(12, "middleware transforms: the card shows the transformed arguments")
async def test_transform(till: Till) -> None:
    cap = Middleware(
        "cap", before_tool=lambda call: Allow({**call.arguments, "amount": 100}, why="cap of the day")
    )
    agent = till.agent(middleware=[cap])
    outcome = await paused(agent)
    (ask,) = outcome.asks
    assert isinstance(ask, CheckIn)
    assert ask.action.arguments["amount"] == 100
    await finished(agent, outcome.checkpoint, Approved(by="ann"))
    assert till.paid == [100]


@scenario(13, "middleware ask plus tripping check-in: not executed, reason named")
async def test_two_gates(till: Till) -> None:
    asks = Middleware("limits", before_tool=lambda call: AskPerson("Really?"))
    outcome = await till.agent(middleware=[asks]).run("refund")
    assert isinstance(outcome, Finished)
    assert "limits" in results(outcome)[0].content
    assert till.paid == []


@scenario(14, "resumed results pass the after-tool middleware once")
async def test_after_tool(till: Till) -> None:
    seen: list[object] = []
    watch = Middleware("watch", after_tool=lambda call, result: seen.append(result) or f"<{result}>")
    agent = till.agent(middleware=[watch])
    outcome = await paused(agent)
    ended = await finished(agent, outcome.checkpoint, Approved(by="ann"))
    assert seen == ["refunded 5000"]
    assert ended.text == "<refunded 5000>"


async def collecting(till: Till) -> tuple[Agent, Paused, InputRequest]:
    agent = till.agent(first_calls(("collect", {})))
    outcome = await paused(agent)
    (ask,) = outcome.asks
    assert isinstance(ask, InputRequest)
    return agent, outcome, ask


@scenario(19, "partial input: pauses again, no model call, values kept, same request")
async def test_partial_input(till: Till) -> None:
    agent, outcome, ask = await collecting(till)
    given = InputReceived(by="ann", request_id=ask.request_id, values={"due": "friday"})
    again = await agent.resume(outcome.checkpoint, given)
    assert isinstance(again, Paused)
    (still,) = again.asks
    assert isinstance(still, InputRequest)
    assert still.request_id == ask.request_id
    assert still.missing == ("count",)
    assert len(agent.model.prompts) == 1  # type: ignore[attr-defined]


@scenario(20, "wrong type, choice, unknown field, stale id: refused, still open")
async def test_bad_input(till: Till) -> None:
    agent, outcome, ask = await collecting(till)
    for values in ({"count": "3"}, {"size": "XL"}, {"colour": "red"}, {"due": ""}):
        reply = InputReceived(by="a", request_id=ask.request_id, values=values)  # type: ignore[arg-type]
        with pytest.raises(InputRequestError):
            await agent.resume(outcome.checkpoint, reply)
    stale = InputReceived(by="a", request_id="in_0", values={"due": "x"})
    with pytest.raises(InputRequestError):
        await agent.resume(outcome.checkpoint, stale)
    await test_complete_input(till)


@scenario(21, "complete input: the collector is not run again")
async def test_complete_input(till: Till) -> None:
    agent, outcome, ask = await collecting(till)
    before = till.collected
    values = {"due": "friday", "count": 3}
    given = InputReceived(by="ann", request_id=ask.request_id, values=values)
    ended = await finished(agent, outcome.checkpoint, given)
    told = json.loads(ended.text)
    assert told["status"] == "input_received"
    assert told["values"] == {"size": "S", "due": "friday", "count": 3}
    assert told["origins"] == {"size": "declaration", "due": "response", "count": "response"}
    assert till.collected == before


@scenario(22, "cancel: conversation kept, no model call")
async def test_cancel_input(till: Till) -> None:
    agent, outcome, ask = await collecting(till)
    ended = await finished(agent, outcome.checkpoint, InputCancelled(by="a", request_id=ask.request_id))
    assert ended.reason is FinishReason.CANCELLED
    assert len(agent.model.prompts) == 1  # type: ignore[attr-defined]
    assert "input_cancelled" in results(ended)[0].content


def approval(amount: object = 42, **facts: Any) -> Approval:
    return Approval(action=action(amount), **({"answer": "approved", "decided_at_ms": 1_000} | facts))


def action(amount: object) -> Any:
    return capture(tenant="t", tool="refund", schema_hash="h", arguments={"amount": amount, "order": "A"})


@scenario(24, "approve 42, execute 9999: MISMATCH")
def test_mismatch() -> None:
    refusal = admit(approval(42), action(9999), now_ms=2_000)
    assert refusal is not None
    assert (refusal.code, refusal.differs) == (RefusalCode.MISMATCH, Difference.INPUT)


@scenario(25, "mutate arguments after approval: the approved copy executes")
async def test_mutation(till: Till) -> None:
    arguments: dict[str, object] = {"order": "A-1", "amount": 5}
    agent = till.agent(Model(lambda prompt: _once(prompt, arguments)))
    outcome = await paused(agent)
    arguments["amount"] = 999999
    await finished(agent, outcome.checkpoint, Approved(by="ann"))
    assert till.paid == [5]


def _once(prompt: Any, arguments: dict[str, object]) -> Any:
    return says("done") if isinstance(prompt.messages[-1], ResultsMessage) else calls(("refund", arguments))


@scenario(26, "reordered keys: same; NaN or oversize: refused")
def test_canonical_equality() -> None:
    one = capture(tenant="t", tool="x", schema_hash="h", arguments={"a": 1, "b": 2})
    two = capture(tenant="t", tool="x", schema_hash="h", arguments={"b": 2, "a": 1.0})
    assert one.digest == two.digest
    for bad in ({"a": float("nan")}, {"a": 2**60}, {"a": "x" * 2_000_000}):
        with pytest.raises(NotFaithful):
            capture(tenant="t", tool="x", schema_hash="h", arguments=bad)


@scenario(27, "second use of one approval: SPENT")
def test_spent() -> None:
    refusal = admit(approval(spent=True), action(42), now_ms=2_000)
    assert refusal is not None
    assert refusal.code is RefusalCode.SPENT


@scenario(28, "a human no: DECLINED (the grant's half comes with grants)")
def test_declined_door() -> None:
    refusal = admit(approval(answer="declined"), action(42), now_ms=2_000)
    assert refusal is not None
    assert refusal.code is RefusalCode.DECLINED


@scenario(31, "withdrawn: REVOKED")
def test_revoked_door() -> None:
    refusal = admit(approval(revoked=True), action(42), now_ms=2_000)
    assert refusal is not None
    assert refusal.code is RefusalCode.REVOKED


@scenario(32, "expired or world moved: STALE with the policy on, passes with it off")
def test_stale_door() -> None:
    late = {"now_ms": 100_000, "state_version": "v2"}
    old = approval(state_version="v1")
    assert admit(old, action(42), **late) is None
    for policy in (Staleness(expires_after_ms=60_000), Staleness(refuse_when_world_moved=True)):
        refusal = admit(old, action(42), staleness=policy, **late)
        assert refusal is not None
        assert refusal.code is RefusalCode.STALE


@scenario(34, "a listener that changes its copy changes nothing")
async def test_listener_copies(till: Till) -> None:
    recorder = CheckInRecorder()
    agent = till.agent()
    agent.attach(recorder)
    await paused(agent)
    (request,) = recorder.requests()
    with pytest.raises(FrozenInstanceError):
        request.question = "something else"  # type: ignore[misc]
    assert recorder.requests() == (request,)


@scenario(35, "redacted field: marker everywhere, the tool gets the value")
async def test_redacted() -> None:
    got: list[str] = []

    @tool(check_in="always", redact=["token"])
    def pay(order: str, token: str) -> str:
        """Pay."""
        got.append(token)
        raise ValueError(f"bad token {token}")

    agent = Agent(
        name="a", model=first_calls(("pay", {"order": "A", "token": "hunter2hunter2"})), tools=[pay]
    )
    outcome = await agent.run("pay")
    assert isinstance(outcome, Paused)
    (ask,) = outcome.asks
    assert isinstance(ask, CheckIn)
    assert "hunter2" not in json.dumps(ask.evidence)
    ended = await finished(agent, outcome.checkpoint, Approved(by="ann"))
    assert got == ["hunter2hunter2"]
    assert "hunter2" not in ended.text


@scenario(36, "four calls: two run now, two pend on one checkpoint")
@scenario(37, "both resolved in either order: one message, tool_use order")
async def test_four_calls(till: Till) -> None:
    uses = (("look", {}), REFUND, ("look", {}), ("refund", {"order": "A-2", "amount": 7}))
    agent = till.agent(first_calls(*uses))
    outcome = await paused(agent)
    first, second = outcome.asks
    one = await agent.resume(outcome.checkpoint, {second.key: Approved(by="ann")})
    assert isinstance(one, Paused)
    ended = await agent.resume(one.checkpoint, {first.key: Approved(by="bob")})
    assert isinstance(ended, Finished)
    assert [r.content for r in results(ended)] == ["looked", "refunded 5000", "looked", "refunded 7"]
    assert till.paid == [7, 5000]


@scenario(38, "stop: one declined, the sibling is skipped")
async def test_stop(till: Till) -> None:
    agent = till.agent(first_calls(REFUND, ("refund", {"order": "A-2", "amount": 7})), on_decline="stop")
    outcome = await paused(agent)
    first, _ = outcome.asks
    ended = await agent.resume(outcome.checkpoint, {first.key: Declined(by="ann")})
    assert isinstance(ended, Finished)
    assert ended.reason is FinishReason.DENIED
    assert [r.status for r in results(ended)] == [ResultStatus.DECLINED, ResultStatus.SKIPPED]
    assert len(agent.model.prompts) == 1  # type: ignore[attr-defined]


@scenario(39, "a synchronous deny under stop: nothing runs, no card")
async def test_deny_under_stop(till: Till) -> None:
    def policy(request: Any) -> Any:
        return PolicyDeny() if request.arguments.get("amount") == 7 else PolicyAllow()

    agent = till.agent(
        first_calls(("look", {}), REFUND, ("refund", {"order": "A-2", "amount": 7})),
        on_decline="stop",
        policy=policy,
    )
    outcome = await agent.run("refund")
    assert isinstance(outcome, Finished)
    assert outcome.reason is FinishReason.DENIED
    assert till.paid == []
    assert all(r.status is not ResultStatus.OK for r in results(outcome))


@scenario(43, "the resumed turn hits another gate: a new ask")
async def test_another_gate(till: Till) -> None:
    def answer(prompt: Any) -> Any:
        return calls(("refund", {"order": "A", "amount": len(prompt.messages)}))

    agent = till.agent(Model(answer), max_turns=3)
    outcome = await paused(agent)
    (first,) = outcome.asks
    again = await agent.resume(outcome.checkpoint, Approved(by="ann"))
    assert isinstance(again, Paused)
    (second,) = again.asks
    assert first.key != second.key


@scenario(45, "a question with options: answered by one of them or in free text")
async def test_question(till: Till) -> None:
    ask = ("ask_user", {"question": "Which?", "options": ["A", "B"]})
    agent = till.agent(first_calls(ask))
    outcome = await paused(agent)
    assert outcome.reason is PauseReason.PENDING_QUESTION
    for answer in (Answered(by="ann", answer="B"), "something else"):
        ended = await finished(agent, outcome.checkpoint, answer)
        assert ended.text == (answer if isinstance(answer, str) else "B")


@scenario(52, "editing arguments to {} runs {} or is refused by the schema, never the original")
async def test_edit_to_nothing(till: Till) -> None:
    agent = till.agent()
    outcome = await paused(agent)
    with pytest.raises(ValueError, match="order"):
        await agent.resume(outcome.checkpoint, Approved(by="ann", arguments={}))
    assert till.paid == []
