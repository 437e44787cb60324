"""The contract's scenarios that need a store: sessions, asks that outlive processes, doors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.agent import Agent
from agent.approval import Staleness
from agent.decision import Answered, Approved, Declined
from agent.run import FinishReason
from agent.tools import tool
from gateway.ask import AskState
from gateway.conditions import holds, parse_condition
from gateway.desk import AskClosed
from gateway.edit import EditRefused
from gateway.ids import PersonId
from gateway.intake import AwaitingDecision, Inbound
from gateway.lifecycle import MoveRefused
from gateway.session import Message, Origin
from tests.support.clock import ManualClock
from tests.support.office import Model, Office, calls, config, first_calls, office, says
from tests.support.scenarios import scenario
from tests.support.valkey import Valkey

REFUND = ("refund", {"order": "A-1", "amount": 5000})


class Till:
    def __init__(self) -> None:
        self.paid: list[int] = []
        self.world = "v1"

    def agent(self, model: Model | None = None, **options: Any) -> Agent:
        @tool(ask="Refund {amount} on order {order}?", check_in="always", state_version=lambda _: self.world)
        async def refund(order: str, amount: int) -> str:
            """Refund an order."""
            self.paid.append(amount)
            return f"refunded {amount}"

        return Agent(name="refunds", model=model or first_calls(REFUND), tools=[refund], **options)


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
async def desk(valkey: Valkey, tmp_path: Path, till: Till) -> AsyncIterator[Office]:
    async with office(valkey.url, config(tmp_path), till.agent()) as made:
        yield made


@scenario(15, "message during a pause: refused with ERR_AWAITING_DECISION or queued; the pause is kept")
async def test_message_during_a_pause(desk: Office) -> None:
    received = await desk.say("refunds", session="s")
    (ask,) = await desk.asks(received.run)
    inbound = Inbound(
        agent="refunds",
        session_key="s",
        message=Message(id="x", text="and?", author="Mia"),
        origin=Origin(),
        queue=False,
    )
    with pytest.raises(AwaitingDecision, match="ERR_AWAITING_DECISION"):
        await desk.gateway.intake.receive(inbound)
    queued = await desk.say("refunds", session="s")
    assert (queued.run, queued.queued) == (None, 1)
    assert (await desk.ask(ask.id)).open


@scenario(16, "the same decision twice: a no-op")
async def test_same_decision_twice(desk: Office, till: Till) -> None:
    received = await desk.say("refunds")
    (ask,) = await desk.asks(received.run)
    first = await desk.decide(ask, Approved(by="ann"))
    second = await desk.decide(ask, Approved(by="ann"))
    assert second.record.decided == first.record.decided
    await desk.finished(received.run)
    assert till.paid == [5000]
    assert (await desk.kinds(received.run)).count("approved") == 1


@scenario(17, "session A paused: B unaffected")
async def test_sessions_are_independent(desk: Office, till: Till) -> None:
    one, two = await desk.say("refunds", session="a"), await desk.say("refunds", session="b")
    (first,), (second,) = await desk.asks(one.run), await desk.asks(two.run)
    await desk.decide(second, Approved(by="ann"))
    await desk.finished(two.run, FinishReason.END_TURN)
    assert (await desk.ask(first.id)).open
    assert till.paid == [5000]


@scenario(29, "in the loop an ask is keyed by its call: two identical calls are two asks")
async def test_identical_calls(valkey: Valkey, tmp_path: Path, till: Till) -> None:
    async with office(valkey.url, config(tmp_path), till.agent(first_calls(REFUND, REFUND))) as desk:
        received = await desk.say("refunds")
        one, two = await desk.asks(received.run, count=2)
        assert one.id != two.id
        assert one.digest == two.digest
        await desk.decide(one, Approved(by="ann"))
        await desk.until(lambda: _paid(till, 1), "the first payment")
        assert (await desk.ask(two.id)).open, "one yes, one execution"


async def _paid(till: Till, count: int) -> bool | None:
    return True if len(till.paid) >= count else None


@scenario(31, "withdraw unspent: revoked and never run; spent: refused")
async def test_withdraw(desk: Office, till: Till) -> None:
    received = await desk.say("refunds")
    (ask,) = await desk.asks(received.run)
    await desk.gateway.desk.withdraw(ask.id, PersonId("mia"), "w1")
    assert (await desk.ask(ask.id)).state is AskState.WITHDRAWN
    await desk.finished(received.run)
    assert till.paid == []
    received = await desk.say("refunds")
    (ask,) = await desk.asks(received.run)
    await desk.decide(ask, Approved(by="ann"))
    await desk.finished(received.run)
    with pytest.raises(MoveRefused):
        await desk.gateway.desk.withdraw(ask.id, PersonId("mia"), "w2")


@scenario(32, "the world moved, policy on: STALE and not executed; off: passes")
@pytest.mark.parametrize("strict", [True, False])
async def test_stale(valkey: Valkey, tmp_path: Path, till: Till, *, strict: bool) -> None:
    settings = config(tmp_path, staleness=Staleness(refuse_when_world_moved=strict))
    async with office(valkey.url, settings, till.agent()) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        till.world = "v2"
        await desk.decide(ask, Approved(by="ann"))
        run = await desk.finished(received.run)
        rows = await desk.rows(received.run)
        if strict:
            assert till.paid == []
            assert "APPROVAL_STALE" in run.state.text
            assert [row.code for row in rows if str(row.kind) == "refused"] == ["APPROVAL_STALE"]
        else:
            assert till.paid == [5000]


@scenario(38, "stop: a late click on the sibling is told")
async def test_late_click_on_a_sibling(valkey: Valkey, tmp_path: Path, till: Till) -> None:
    agent = till.agent(first_calls(REFUND, REFUND), on_decline="stop")
    async with office(valkey.url, config(tmp_path), agent) as desk:
        received = await desk.say("refunds")
        one, two = await desk.asks(received.run, count=2)
        await desk.decide(one, Declined(by="ann"))
        with pytest.raises(AskClosed) as closed:
            await desk.decide(two, Approved(by="bob"))
        assert closed.value.record.state is AskState.SUPERSEDED


@scenario(40, "a bad edit: told by field; a retry succeeds with the edited values")
async def test_bad_edit(desk: Office, till: Till) -> None:
    received = await desk.say("refunds")
    (ask,) = await desk.asks(received.run)
    with pytest.raises(EditRefused) as refused:
        await desk.decide(ask, Approved(by="ann", arguments={"order": "A-1", "amount": "lots"}))
    assert set(refused.value.fields) == {"amount"}
    await desk.decide(ask, Approved(by="ann", arguments={"order": "A-1", "amount": 4200}))
    await desk.finished(received.run)
    assert till.paid == [4200]


@scenario(43, "the resumed turn hits another gate: a new ask")
async def test_next_gate(valkey: Valkey, tmp_path: Path, till: Till) -> None:
    def answer(prompt: Any) -> Any:
        return calls(REFUND) if len(prompt.messages) < 5 else says("done")

    async with office(valkey.url, config(tmp_path), till.agent(Model(answer))) as desk:
        received = await desk.say("refunds")
        (first,) = await desk.asks(received.run)
        await desk.decide(first, Approved(by="ann"))
        await desk.until(lambda: _paid(till, 1), "the first payment")
        (second,) = await desk.asks(received.run)
        assert first.id != second.id
        await desk.decide(second, Approved(by="ann"))
        await desk.finished(received.run, FinishReason.END_TURN)


@scenario(51, "a missing or malformed field: a rule's condition is false, and the call falls through to ask")
@pytest.mark.parametrize("arguments", [{}, {"intent": None}, {"intent": 7}, {"intent": ["read"]}])
def test_conditions_fall_through(arguments: Any) -> None:
    only_reads = parse_condition({"field": "intent", "op": "eq", "value": "read"}, path="when")
    not_writes = parse_condition({"field": "intent", "op": "ne", "value": "write"}, path="when")
    assert not holds(only_reads, arguments)
    assert not holds(not_writes, arguments) or isinstance(arguments.get("intent"), str)


@scenario(52, "editing arguments to {} is refused by the schema, never the original")
async def test_edit_to_nothing(desk: Office, till: Till) -> None:
    received = await desk.say("refunds")
    (ask,) = await desk.asks(received.run)
    with pytest.raises(EditRefused):
        await desk.decide(ask, Approved(by="ann", arguments={}))
    assert (await desk.ask(ask.id)).open
    assert till.paid == []


@scenario(45, "a question's answer reaches the model")
async def test_answer(valkey: Valkey, tmp_path: Path, till: Till) -> None:
    model = first_calls(("ask_user", {"question": "Which?", "options": ["A", "B"]}))
    async with office(valkey.url, config(tmp_path), till.agent(model)) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        await desk.decide(ask, Answered(by="ann", answer="neither"))
        assert (await desk.finished(received.run)).state.text == "neither"


@scenario(32, "an ask that expires: nobody is named, nothing runs")
async def test_expiry(valkey: Valkey, tmp_path: Path, till: Till, clock: ManualClock) -> None:
    async with office(
        valkey.url, config(tmp_path, expire_after_ms=60_000), till.agent(), clock=clock
    ) as desk:
        received = await desk.say("refunds")
        await desk.asks(received.run)
        clock.move(ms=61_000)
        run = await desk.finished(received.run)
        assert run.state.text.startswith("not executed: nobody decided in time")
        assert till.paid == []
