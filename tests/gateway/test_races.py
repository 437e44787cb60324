"""Races: whoever is first binds, whoever is second is told, and the tool runs once. Each hundreds of times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.agent import Agent
from agent.decision import Approved, Declined
from agent.run import FinishReason
from agent.tools import tool
from gateway.app import Connection, build
from gateway.ask import AskState
from gateway.desk import AskChanged, AskClosed, Recorded
from gateway.ids import PersonId, session_id
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from tests.support.clock import ManualClock
from tests.support.office import Office, config, first_calls, office
from tests.support.valkey import Valkey

PEOPLE = ("ann", "bob", "mia")
TIMES = 100


class Paid:
    """Counts what was really executed, by order."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    def agent(self, *orders: str, **options: Any) -> Agent:
        @tool(ask="Pay {amount} for {order}?", check_in="always")
        async def pay(order: str, amount: int) -> str:
            """Pay an order."""
            self.orders.append(order)
            return f"paid {amount}"

        uses = [("pay", {"order": order, "amount": 5}) for order in orders or ("A",)]
        return Agent(name="a", model=first_calls(*uses), tools=[pay], **options)


@pytest.fixture
def paid() -> Paid:
    return Paid()


@asynccontextmanager
async def desks(valkey: Valkey, folder: Path, agent: Agent, count: int) -> AsyncIterator[list[Office]]:
    """More desks on the same store, each with connections of its own, as other processes have."""
    clock = ManualClock()
    async with AsyncExitStack() as stack:
        made: list[Office] = []
        for _ in range(count):
            store = await open_store(valkey.url, clock=clock)
            stack.push_async_callback(store.close)
            connection = Connection(store=store, heart=Heart(valkey.url, clock=clock), embedded=None)
            settings = config(folder, approvers=PEOPLE)
            gateway = build(settings, connection, channels={}, agents={agent.name: agent}, clock=clock)
            made.append(Office(gateway, clock))
        yield made


async def at_once(*work: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


async def test_fifty_decisions_over_three_desks_are_one(valkey: Valkey, tmp_path: Path, paid: Paid) -> None:
    agent = paid.agent()
    async with (
        office(valkey.url, config(tmp_path, approvers=PEOPLE), agent) as main,
        desks(valkey, tmp_path, agent, 3) as others,
    ):
        for round_ in range(5):
            received = await main.say("a")
            (ask,) = await main.asks(received.run)
            clicks = [
                others[n % 3].decide(ask, Approved(by=PEOPLE[n % 3], note=f"click {n}")) for n in range(50)
            ]
            told = await at_once(*clicks)
            won = [outcome for outcome in told if isinstance(outcome, Recorded)]
            lost = [outcome for outcome in told if isinstance(outcome, AskClosed)]
            assert (len(won), len(lost)) == (1, 49), told
            assert {error.record.answer for error in lost} == {won[0].record.answer}, "all are told who won"
            await main.finished(received.run, FinishReason.END_TURN)
            assert len(paid.orders) == round_ + 1


async def test_an_edit_against_an_approval_of_what_was_before(
    valkey: Valkey, tmp_path: Path, paid: Paid
) -> None:
    agent = paid.agent()
    async with (
        office(valkey.url, config(tmp_path), agent) as main,
        desks(valkey, tmp_path, agent, 2) as (one, two),
    ):
        for _ in range(TIMES):
            received = await main.say("a")
            (ask,) = await main.asks(received.run)
            edited = Approved(by="ann", arguments={"order": "B", "amount": 4})
            told = await at_once(one.decide(ask, edited), two.decide(ask, Approved(by="bob")))
            assert sum(isinstance(outcome, Recorded) for outcome in told) == 1, told
            assert sum(isinstance(outcome, AskClosed | AskChanged) for outcome in told) == 1, told
            run = await main.finished(received.run)
            ran = paid.orders[-1]
            assert (ran == "B") is isinstance(told[0], Recorded), "what ran is what the winner approved"
            assert (await main.kinds(run.state.run_id)).count("used") == 1
        assert len(paid.orders) == TIMES


async def test_an_expiry_against_an_approval(
    valkey: Valkey, tmp_path: Path, paid: Paid, clock: ManualClock
) -> None:
    settings = config(tmp_path, expire_after_ms=60_000)
    async with office(valkey.url, settings, paid.agent(), clock=clock) as main:
        executed = 0
        for round_ in range(20):
            received = await main.say("a")
            (ask,) = await main.asks(received.run)
            clock.move(ms=59_990 if round_ % 2 else 60_010)
            (told,) = await at_once(main.decide(ask, Approved(by="ann")))
            clock.move(ms=1_000)
            run = await main.finished(received.run)
            executed += isinstance(told, Recorded)
            assert (await main.ask(ask.id)).state is (
                AskState.DECIDED if isinstance(told, Recorded) else AskState.EXPIRED
            )
            assert run.state.text.startswith("paid" if isinstance(told, Recorded) else "not executed")
        assert len(paid.orders) == executed


async def test_both_asks_of_a_reply_at_once(valkey: Valkey, tmp_path: Path, paid: Paid) -> None:
    agent = paid.agent("A", "B")
    async with (
        office(valkey.url, config(tmp_path), agent) as main,
        desks(valkey, tmp_path, agent, 2) as (one, two),
    ):
        for _ in range(TIMES):
            received = await main.say("a")
            first, second = await main.asks(received.run, count=2)
            told = await at_once(
                one.decide(first, Approved(by="ann")), two.decide(second, Approved(by="bob"))
            )
            assert all(isinstance(outcome, Recorded) for outcome in told), told
            await main.finished(received.run, FinishReason.END_TURN)
        assert len(paid.orders) == 2 * TIMES


async def test_under_stop_a_decline_against_the_approval_of_its_sibling(
    valkey: Valkey, tmp_path: Path, paid: Paid
) -> None:
    agent = paid.agent("A", "B", on_decline="stop")
    async with (
        office(valkey.url, config(tmp_path), agent) as main,
        desks(valkey, tmp_path, agent, 2) as (one, two),
    ):
        for _ in range(TIMES):
            before = len(paid.orders)
            received = await main.say("a")
            first, second = await main.asks(received.run, count=2)
            told = await at_once(
                one.decide(first, Declined(by="ann")), two.decide(second, Approved(by="bob"))
            )
            assert isinstance(told[0], Recorded), told
            await main.finished(received.run, FinishReason.DENIED)
            ran = len(paid.orders) - before
            if not isinstance(told[1], Recorded):
                assert isinstance(told[1], AskClosed)
                assert ran == 0
            assert ran <= 1


async def test_a_stop_against_an_approval(valkey: Valkey, tmp_path: Path, paid: Paid) -> None:
    agent = paid.agent()
    async with (
        office(valkey.url, config(tmp_path), agent) as main,
        desks(valkey, tmp_path, agent, 2) as (one, two),
    ):
        for number in range(TIMES):
            before = len(paid.orders)
            received = await main.say("a")
            assert received.run is not None
            (ask,) = await main.asks(received.run)
            stop = one.gateway.desk.stop(received.run, PersonId("mia"), f"stop-{number}")
            _, told = await at_once(stop, two.decide(ask, Approved(by="bob")))
            await main.finished(received.run)
            record = await main.ask(ask.id)
            kinds = await main.kinds(received.run)
            assert len(paid.orders) - before == kinds.count("used") <= 1
            if record.state is AskState.WITHDRAWN or record.revoked_by is not None:
                assert kinds.count("used") == 0, "what was taken back never runs"
            assert record.state is AskState.WITHDRAWN or isinstance(told, Recorded)


async def test_a_message_as_the_run_finishes_is_taken_once(
    valkey: Valkey, tmp_path: Path, paid: Paid
) -> None:
    agent = paid.agent()
    async with (
        office(valkey.url, config(tmp_path), agent) as main,
        desks(valkey, tmp_path, agent, 1) as (other,),
    ):
        for number in range(TIMES):
            session = f"race-{number}"
            received = await main.say("a", session=session)
            (ask,) = await main.asks(received.run)
            await at_once(
                main.decide(ask, Declined(by="ann")),
                other.say("a", "and this", session=session, id="second"),
                other.say("a", "and this", session=session, id="second"),
            )
            await main.finished(received.run)
            started = await main.until(partial(_second_run, main, session), "the second message's run")
            assert started == 2


async def _second_run(main: Office, session: str) -> int | None:
    of = session_id(session)
    rows = [row for row in await main.rows() if str(row.kind) == "run-started" and row.session_id == of]
    return len(rows) if len(rows) > 1 else None


async def test_one_click_that_comes_again_and_again_is_one(
    valkey: Valkey, tmp_path: Path, paid: Paid
) -> None:
    async with office(valkey.url, config(tmp_path), paid.agent()) as main:
        received = await main.say("a")
        (ask,) = await main.asks(received.run)
        clicks = [main.decide(ask, Approved(by="ann"), operation="the click") for _ in range(200)]
        told = await at_once(*clicks)
        assert all(isinstance(outcome, Recorded) for outcome in told), told
        await main.finished(received.run)
        assert paid.orders == ["A"]
