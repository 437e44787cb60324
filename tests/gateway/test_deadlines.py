"""When time passes, an open ask expires: once, at its time, and never over a decision."""

from __future__ import annotations

from typing import cast

import pytest

from agent.decision import Approved
from gateway import asking, consumer
from gateway.ask import AskRecord, AskState, load_ask
from gateway.deadlines import Deadlines
from gateway.journal_row import Kind, load_row
from gateway.lifecycle import Ruled, transition
from gateway.ports import Commit, Store
from gateway.queues import OPEN_ASKS, TIMERS, runs_of
from gateway.store.redis import RedisStore
from tests.support.asks import ASK, ask_record, binding, question
from tests.support.clock import ManualClock
from tests.support.consuming import at_work, meddling, resting
from tests.support.waiting import until

HOUR_MS = 3_600_000
PARTITION = 7


@pytest.fixture(autouse=True)
def quick_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "SWEEP_SECONDS", 0.02)


@pytest.fixture
async def asked(store: RedisStore, clock: ManualClock) -> AskRecord:
    """An open ask that has an hour."""
    record = ask_record(deadline_ms=clock.now_ms() + HOUR_MS)
    await store.commit(asking.opened(record).commit(PARTITION, "open", keep_ms=HOUR_MS))
    return record


def deadlines(store: Store, clock: ManualClock, instance: str = "one") -> Deadlines:
    return Deadlines(store, clock, resting(clock, instance))


async def ask(store: RedisStore) -> AskRecord:
    (stored,) = await store.load([ASK])
    assert stored is not None
    return load_ask(stored.body)


async def kinds(store: RedisStore) -> list[object]:
    return [load_row(row.body).kind for row in await store.rows(PARTITION, after=0, limit=100)]


async def depth(store: RedisStore, queue: str) -> int:
    return (await store.queue_depths([queue]))[0].waiting


async def timer_gone(store: RedisStore) -> None:
    for _ in range(10_000):
        if await depth(store, TIMERS) == 0:
            return
    raise AssertionError("the timer is still there")


class TestAnOpenAsk:
    async def test_expires_at_its_time_and_wakes_its_run(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord
    ):
        timers = deadlines(store, clock)
        async with at_work(timers.consumer):
            await until(lambda: timers.consumer._due, what="the timer is known")
            assert (await ask(store)).open
            clock.move(ms=HOUR_MS + 1)
            await timer_gone(store)
        expired = await ask(store)
        assert expired.state is AskState.EXPIRED
        assert expired.closed_at_ms is not None
        assert expired.closed_at_ms >= cast(int, asked.deadline_ms)
        assert await kinds(store) == [Kind.EXPIRED]
        assert await depth(store, runs_of("refunds")) == 1
        assert await store.members(OPEN_ASKS, low=None, high=None, limit=10) == []

    async def test_does_not_expire_a_moment_before(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord
    ):
        timers = deadlines(store, clock)
        clock.move(ms=HOUR_MS - 60_000)
        async with at_work(timers.consumer):
            await until(lambda: timers.consumer._due, what="the timer is known")
        assert (await ask(store)).open

    async def test_expires_once_however_many_processes_look(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord
    ):
        all_of_them = [deadlines(store, clock, f"instance-{n}").consumer for n in range(4)]
        clock.move(ms=HOUR_MS + 1)
        async with at_work(*all_of_them):
            await timer_gone(store)
        assert await kinds(store) == [Kind.EXPIRED]

    async def test_expires_late_after_everybody_was_down(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord
    ):
        clock.move(ms=48 * HOUR_MS)
        async with at_work(deadlines(store, clock).consumer):
            await timer_gone(store)
        assert (await ask(store)).state is AskState.EXPIRED

    async def test_that_is_a_question_expires_too(self, store: RedisStore, clock: ManualClock):
        record = ask_record(question(), deadline_ms=clock.now_ms())
        await store.commit(asking.opened(record).commit(PARTITION, "open", keep_ms=HOUR_MS))
        async with at_work(deadlines(store, clock).consumer):
            await timer_gone(store)
        assert (await ask(store)).state is AskState.EXPIRED

    async def test_without_a_deadline_has_no_timer(self, store: RedisStore):
        await store.commit(asking.opened(ask_record()).commit(PARTITION, "open", keep_ms=HOUR_MS))
        assert await depth(store, TIMERS) == 0


def decided(record: AskRecord) -> AskRecord:
    return transition(record, Ruled(binding(Approved(by="ann"), record)))


class TestADecidedAsk:
    async def test_stays_decided_and_the_timer_leaves(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord
    ):
        commit = asking.changed(decided(asked), 1).commit(PARTITION, "decide", keep_ms=HOUR_MS)
        await store.commit(commit)
        clock.move(ms=HOUR_MS + 1)
        async with at_work(deadlines(store, clock).consumer):
            await timer_gone(store)
        assert (await ask(store)).state is AskState.DECIDED
        assert await kinds(store) == []
        assert await depth(store, runs_of("refunds")) == 0

    async def test_in_the_same_moment_stays_decided(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord
    ):
        """The decision arrives after the timer looked, and before it could say that time is up."""
        between, meddler = meddling(store)
        seen: list[str] = []

        async def decide_first(commit: Commit) -> None:
            seen.append(commit.operation.partition("/")[0])
            if len(seen) == 1:
                await store.commit(asking.changed(decided(asked), 1).commit(PARTITION, "d", keep_ms=HOUR_MS))

        meddler.before = decide_first
        clock.move(ms=HOUR_MS + 1)
        async with at_work(deadlines(between, clock).consumer):
            await timer_gone(store)
        assert (await ask(store)).state is AskState.DECIDED
        assert seen == ["timer", "timer-again", "timer"]
        assert await kinds(store) == []

    async def test_whose_claim_was_lost_is_left_to_the_new_holder(
        self, store: RedisStore, clock: ManualClock, asked: AskRecord, caplog: pytest.LogCaptureFixture
    ):
        between, meddler = meddling(store)
        other = deadlines(store, clock, "other")
        late: list[Commit] = []

        async def too_slow(commit: Commit) -> None:
            if not late:
                late.append(commit)
                clock.move(ms=60_000)
                async with at_work(other.consumer):
                    await timer_gone(store)

        meddler.before = too_slow
        clock.move(ms=HOUR_MS + 1)
        slow = deadlines(between, clock)
        async with at_work(slow.consumer):
            await until(lambda: late and not slow.consumer.active, what="the slow one gives up")
        assert await kinds(store) == [Kind.EXPIRED]
        assert "work" not in caplog.messages, "losing a claim is no failure"
