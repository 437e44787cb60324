"""Runs through the whole gateway: store, desk, worker and timers are real; the model and the tools are the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.decision import Answered, Approved, Declined, GivenUp, Happened, RunAgain
from agent.ids import RunId
from agent.messages import ResultsMessage, check_pairing
from agent.run import FinishReason
from agent.tools import tool
from gateway.ask import AskState, OutcomeKind
from gateway.desk import AskChanged, AskClosed
from gateway.edit import EditRefused
from gateway.ids import SessionId
from gateway.session import load_session
from tests.support.clock import ManualClock
from tests.support.office import Look, Office, config, first_calls, office
from tests.support.valkey import Valkey


class Books:
    """Remembers what was really executed."""

    def __init__(self) -> None:
        self.refunds: list[tuple[str, int]] = []
        self.lookups: list[str] = []

    def agent(self, model: object, **options: object) -> Agent:
        @tool(ask="Refund {amount} on order {order}?", check_in="always", timeout=5)
        async def refund(order: str, amount: int) -> str:
            """Refund an order."""
            self.refunds.append((order, amount))
            return f"refunded {amount}"

        @tool
        def lookup(order: str) -> str:
            """Look an order up."""
            self.lookups.append(order)
            return f"order {order}"

        return Agent(name="refunds", model=model, tools=[refund, lookup], **options)  # type: ignore[arg-type]


REFUND = ("refund", {"order": "A-1", "amount": 5000})
LOOKUP = ("lookup", {"order": "A-1"})


@pytest.fixture
def books() -> Books:
    return Books()


async def test_an_approved_action_runs_once_and_the_run_ends(
    valkey: Valkey, books: Books, tmp_path: Path
) -> None:
    async with office(valkey.url, config(tmp_path), books.agent(first_calls(REFUND))) as desk:
        received = await desk.say("refunds", "refund it")
        (ask,) = await desk.asks(received.run)
        assert ask.ask.question == "Refund 5000 on order A-1?"
        assert books.refunds == []
        await desk.decide(ask, Approved(by="ann", note="fine"))
        run = await desk.finished(received.run, FinishReason.END_TURN)
        assert books.refunds == [("A-1", 5000)]
        assert run.state.text == "refunded 5000"
        check_pairing(await desk.transcript(run))
        after = await desk.ask(ask.id)
        assert after.state is AskState.DECIDED
        assert after.outcome is not None
        assert after.outcome.kind is OutcomeKind.DONE
        assert await desk.kinds(received.run) == [
            "run-started",
            "ask",
            "approved",
            "used",
            "executed",
            "run-finished",
        ]
        assert await desk.open_asks() == []


async def test_a_declined_action_never_runs(valkey: Valkey, books: Books, tmp_path: Path) -> None:
    model = first_calls(REFUND)
    async with office(valkey.url, config(tmp_path), books.agent(model)) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        await desk.decide(ask, Declined(by="bob", note="not this week"))
        run = await desk.finished(received.run, FinishReason.END_TURN)
        assert books.refunds == []
        assert run.state.text.startswith("declined by human: not this week")
        assert len(model.prompts) == 2, "once before the ask, once after the decline"


async def test_an_edit_makes_a_revision_and_runs_the_edited_arguments(
    valkey: Valkey, books: Books, tmp_path: Path
) -> None:
    async with office(valkey.url, config(tmp_path), books.agent(first_calls(REFUND))) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        with pytest.raises(EditRefused) as refused:
            await desk.decide(ask, Approved(by="ann", arguments={"order": "A-1", "amount": "many"}))
        assert "amount" in refused.value.fields
        await desk.decide(ask, Approved(by="ann", arguments={"order": "A-1", "amount": 4200}))
        run = await desk.finished(received.run)
        assert books.refunds == [("A-1", 4200)]
        assert "ann changed the arguments" in run.state.text
        after = await desk.ask(ask.id)
        assert after.revision == 2
        assert after.ask.question == "Refund 4200 on order A-1?", "the card is about what runs"
        with pytest.raises(AskClosed):
            await desk.decide(ask, Approved(by="bob"))


async def test_a_click_on_an_old_revision_is_told_to_look_again(
    valkey: Valkey, books: Books, tmp_path: Path
) -> None:
    async with office(valkey.url, config(tmp_path), books.agent(first_calls(REFUND))) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        with pytest.raises(AskChanged):
            await desk.decide(ask, Approved(by="ann"), revision=2)
        assert (await desk.ask(ask.id)).open


async def test_two_asks_of_one_reply_and_two_calls_that_run_now(
    valkey: Valkey, books: Books, tmp_path: Path
) -> None:
    model = first_calls(LOOKUP, REFUND, ("refund", {"order": "A-2", "amount": 10}), LOOKUP)
    async with office(valkey.url, config(tmp_path), books.agent(model)) as desk:
        received = await desk.say("refunds")
        first, second = await desk.asks(received.run, count=2)
        await desk.until(_is(lambda: len(books.lookups) == 2), "both lookups")
        await desk.decide(second, Approved(by="ann"))
        await desk.decide(first, Declined(by="ann"))
        run = await desk.finished(received.run, FinishReason.END_TURN)
        assert len(books.refunds) == 1
        transcript = await desk.transcript(run)
        check_pairing(transcript)
        results = [m for m in transcript if isinstance(m, ResultsMessage)]
        assert len(results) == 1
        assert len(results[0].results) == 4


async def test_under_stop_one_decline_closes_the_other_ask_in_the_same_commit(
    valkey: Valkey, books: Books, tmp_path: Path
) -> None:
    model = first_calls(REFUND, ("refund", {"order": "A-2", "amount": 10}))
    async with office(valkey.url, config(tmp_path), books.agent(model, on_decline="stop")) as desk:
        received = await desk.say("refunds")
        first, second = await desk.asks(received.run, count=2)
        await desk.decide(first, Declined(by="ann"))
        assert (await desk.ask(second.id)).state is AskState.SUPERSEDED
        with pytest.raises(AskClosed):
            await desk.decide(second, Approved(by="bob"))
        await desk.finished(received.run, FinishReason.DENIED)
        assert books.refunds == []


async def test_an_ask_expires_and_a_late_click_is_refused_before_the_timer_fires(
    valkey: Valkey, books: Books, tmp_path: Path, clock: ManualClock
) -> None:
    settings = config(tmp_path, expire_after_ms=60_000)
    async with office(valkey.url, settings, books.agent(first_calls(REFUND)), clock=clock) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        clock.move(ms=61_000)
        with pytest.raises(AskClosed) as closed:
            await desk.decide(ask, Approved(by="ann"))
        assert closed.value.record.state is AskState.EXPIRED
        run = await desk.finished(received.run, FinishReason.END_TURN)
        assert run.state.text.startswith("not executed: nobody decided in time")
        assert books.refunds == []


async def test_a_stop_withdraws_asks_and_ends_the_run(valkey: Valkey, books: Books, tmp_path: Path) -> None:
    async with office(valkey.url, config(tmp_path), books.agent(first_calls(REFUND))) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        await desk.gateway.desk.stop(received.run, "mia", "stop-1")  # type: ignore[arg-type]
        assert (await desk.ask(ask.id)).state is AskState.WITHDRAWN
        run = await desk.finished(received.run, FinishReason.CANCELLED)
        assert run.state.stopped_by == "mia"
        assert books.refunds == []


async def test_a_message_during_a_pause_waits_and_starts_the_next_run(
    valkey: Valkey, books: Books, tmp_path: Path
) -> None:
    async with office(valkey.url, config(tmp_path), books.agent(first_calls(REFUND))) as desk:
        received = await desk.say("refunds", session="s")
        (ask,) = await desk.asks(received.run)
        queued = await desk.say("refunds", "and hurry", session="s", id="second")
        assert queued.run is None
        assert queued.queued == 1
        again = await desk.say("refunds", "and hurry", session="s", id="second")
        assert again.queued == 1
        await desk.decide(ask, Approved(by="ann"))
        await desk.finished(received.run)
        active = await desk.until(lambda: _active(desk, received.session), "the next run")
        (next_ask,) = await desk.asks(active)
        assert next_ask.id != ask.id


async def _active(desk: Office, session: SessionId) -> object:
    stored = (await desk.gateway.connection.store.load([session]))[0]
    assert stored is not None
    return load_session(stored.body).active_run


async def test_a_question_and_its_answer(valkey: Valkey, books: Books, tmp_path: Path) -> None:
    model = first_calls(("ask_user", {"question": "Which order?", "options": ["A-1", "A-2"]}))
    async with office(valkey.url, config(tmp_path), books.agent(model)) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        await desk.decide(ask, Answered(by="ann", answer="A-2"))
        run = await desk.finished(received.run)
        assert run.state.text == "A-2"


async def test_a_tool_that_times_out_opens_an_outcome_question_and_a_late_result_answers_it(
    valkey: Valkey, tmp_path: Path
) -> None:
    released = asyncio.Event()

    @tool(check_in="always", timeout=0.05)
    async def slow() -> str:
        """Take long."""
        await asyncio.shield(released.wait())
        return "done after all"

    agent = Agent(name="refunds", model=first_calls(("slow", {})), tools=[slow])
    async with office(valkey.url, config(tmp_path), agent) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        await desk.decide(ask, Approved(by="ann"))
        (outcome,) = await desk.until(
            _open_of(desk, received.run, "outcome_question"), "the outcome question"
        )
        released.set()
        run = await desk.finished(received.run, FinishReason.END_TURN)
        assert run.state.text == "done after all"
        assert (await desk.ask(outcome.id)).state is AskState.SUPERSEDED
        assert (await desk.ask(ask.id)).outcome.kind is OutcomeKind.DONE  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", [Happened(by="ann"), RunAgain(by="ann"), GivenUp(by="ann")])
async def test_the_answers_to_an_outcome_question(valkey: Valkey, tmp_path: Path, answer: object) -> None:
    tries: list[int] = []
    hang = asyncio.Event()

    @tool(check_in="always", timeout=0.05)
    async def slow() -> str:
        """Take long, the first time."""
        tries.append(1)
        if len(tries) == 1:
            await hang.wait()
        return "done"

    agent = Agent(name="refunds", model=first_calls(("slow", {})), tools=[slow])
    async with office(valkey.url, config(tmp_path), agent) as desk:
        received = await desk.say("refunds")
        (ask,) = await desk.asks(received.run)
        await desk.decide(ask, Approved(by="ann"))
        (outcome,) = await desk.until(
            _open_of(desk, received.run, "outcome_question"), "the outcome question"
        )
        await desk.decide(outcome, answer)  # type: ignore[arg-type]
        run = await desk.finished(received.run)
        if isinstance(answer, RunAgain):
            assert run.state.text == "done"
            assert len(tries) == 2
        elif isinstance(answer, Happened):
            assert run.state.text.startswith("A person confirmed")
            assert len(tries) == 1
        else:
            assert run.state.finish is FinishReason.CANCELLED
            assert len(tries) == 1


def _open_of(desk: Office, run: RunId | None, kind: str) -> Look:
    async def look() -> object:
        assert run is not None
        record = await desk.run(run)
        found = [await desk.ask(id_) for id_ in record.asks.values()]
        return [ask for ask in found if ask.open and ask.ask.kind == kind] or None

    return look


def _is(check: Callable[[], bool]) -> Look:
    async def look() -> object:
        return True if check() else None

    return look


async def test_many_runs_at_once_each_execute_once(valkey: Valkey, books: Books, tmp_path: Path) -> None:
    async with office(valkey.url, config(tmp_path), books.agent(first_calls(REFUND))) as desk:
        received = await asyncio.gather(*(desk.say("refunds") for _ in range(100)))

        async def one(run: object) -> None:
            (ask,) = await desk.asks(run)  # type: ignore[arg-type]
            await desk.decide(ask, Approved(by="ann"))
            await desk.finished(run, FinishReason.END_TURN)  # type: ignore[arg-type]

        await asyncio.gather(*(one(r.run) for r in received))
        assert len(books.refunds) == 100
