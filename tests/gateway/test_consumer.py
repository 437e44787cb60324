"""Due work is taken a bounded number at a time, shared among processes, and found even if nobody rang."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateway import consumer as module
from gateway.consumer import Consumer
from gateway.errors import StoreUnreachable
from gateway.heartbeat import Heartbeat
from gateway.ports import ClaimBatch, Claimed, Hold, Release, Store, Wake
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.consuming import at_work, resting
from tests.support.stores import a_commit
from tests.support.waiting import until

QUEUE = "runs:a"
LEASE_MS = 30_000
HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def quick_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.02)


@dataclass
class Hands:
    """What handles the work: waits at the gate, then ends the claim."""

    store: RedisStore
    heartbeat: Heartbeat
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[str] = field(default_factory=list[str])
    ended: list[str] = field(default_factory=list[str])
    most: int = 0
    broken: set[str] = field(default_factory=set[str])

    async def handle(self, claim: Claimed, hold: Hold) -> None:
        assert self.heartbeat.alive(hold), "the claim is not in the heartbeat's care"
        self.begun.append(claim.member)
        self.most = max(self.most, len(self.begun) - len(self.ended))
        await self.gate.wait()
        if claim.member in self.broken:
            raise RuntimeError("broken")
        partition = int(claim.member[4:6])
        release = Release(hold.queue, claim.member, claim.generation, leave=True)
        await self.store.commit(a_commit(partition=partition, hold=hold, work=(release,)))
        self.ended.append(claim.member)


Hire = Callable[..., tuple[Consumer, Hands]]


@pytest.fixture
def hire(store: RedisStore, clock: ManualClock) -> Hire:
    def new(*, instance: str = "one", concurrency: int = 8, of: object = None) -> tuple[Consumer, Hands]:
        heartbeat = resting(clock, instance)
        hands = Hands(store, heartbeat)
        consumer = Consumer(
            store=cast(Store, of or store),
            clock=clock,
            heartbeat=heartbeat,
            queues=(QUEUE,),
            handle=hands.handle,
            lease_ms=LEASE_MS,
            concurrency=concurrency,
        )
        return consumer, hands

    return new


async def due(store: RedisStore, count: int, *, at_ms: int | None = None, partition: int = 7) -> list[str]:
    members = [f"run_{partition:02d}_{number}" for number in range(count)]
    work = tuple(Wake(QUEUE, member, at_ms) for member in members)
    await store.commit(a_commit(partition=partition, work=work))
    return members


async def waiting(store: RedisStore) -> int:
    (depth,) = await store.queue_depths([QUEUE])
    return depth.waiting


class TestConcurrency:
    async def test_is_bounded_and_everything_is_done_once(self, store: RedisStore, hire: Hire):
        members = await due(store, 30) + await due(store, 10, partition=8)
        consumer, hands = hire(concurrency=4)
        async with at_work(consumer):
            await until(lambda: consumer.active == 4, what="four at once")
            hands.gate.set()
            await until(lambda: len(hands.ended) == 40, what="all of it")
        assert hands.most <= 4
        assert sorted(hands.begun) == sorted(members)
        assert await waiting(store) == 0

    async def test_of_several_processes_adds_up(self, store: RedisStore, hire: Hire):
        members = await due(store, 40)
        (one, first), (two, second) = hire(concurrency=20), hire(instance="two", concurrency=20)
        async with at_work(one, two):
            await until(lambda: one.active == two.active == 20, what="both have their hands full")
            first.gate.set()
            second.gate.set()
            await until(lambda: len(first.ended + second.ended) == 40, what="all of it")
        assert Counter(first.begun + second.begun) == Counter(members)

    async def test_leaves_what_does_not_fit_to_others(self, store: RedisStore, hire: Hire):
        await due(store, 5)
        (one, first), (two, second) = hire(concurrency=4), hire(instance="two")
        async with at_work(one):
            await until(lambda: one.active == 4, what="its hands are full")
            async with at_work(two):
                await until(lambda: two.active == 1, what="the fifth goes to another process")
                second.gate.set()
            first.gate.set()


class TestLooking:
    async def test_when_a_bell_rings(self, store: RedisStore, hire: Hire, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(module, "SWEEP_SECONDS", HOUR_MS)
        consumer, hands = hire()
        hands.gate.set()
        async with at_work(consumer):
            await due(store, 1)
            consumer.ring(QUEUE, 7)
            await until(lambda: hands.ended, what="what the bell rang for")

    async def test_finds_what_nobody_rang_for(self, store: RedisStore, hire: Hire):
        consumer, hands = hire()
        hands.gate.set()
        async with at_work(consumer):
            for partition in (0, 31, 63):
                await due(store, 1, partition=partition)
            await until(lambda: len(hands.ended) == 3, what="work without a bell")

    async def test_finds_what_becomes_due(self, store: RedisStore, hire: Hire, clock: ManualClock):
        await due(store, 1, at_ms=clock.now_ms() + HOUR_MS)
        consumer, hands = hire()
        hands.gate.set()
        async with at_work(consumer):
            await until(lambda: consumer._due, what="it knows when to look again")
            assert hands.begun == []
            clock.move(ms=HOUR_MS + 1)
            await until(lambda: hands.ended, what="what became due")

    async def test_ignores_bells_of_other_queues(self, hire: Hire):
        consumer, _ = hire()
        consumer.ring("runs:b", 7)
        assert not consumer._ready


class TestFailures:
    async def test_of_one_piece_of_work_stop_no_other_and_are_logged(
        self, store: RedisStore, hire: Hire, caplog: pytest.LogCaptureFixture
    ):
        await due(store, 3)
        consumer, hands = hire()
        hands.broken.add("run_07_1")
        hands.gate.set()
        async with at_work(consumer):
            await until(lambda: len(hands.ended) == 2 and len(hands.begun) == 3, what="the others")
            assert consumer.serving
        assert "work" in caplog.messages

    async def test_leave_their_claim_to_run_out(self, store: RedisStore, hire: Hire, clock: ManualClock):
        await due(store, 1)
        consumer, hands = hire()
        hands.broken.add("run_07_0")
        hands.gate.set()
        async with at_work(consumer):
            await until(lambda: hands.begun and not consumer.active, what="the failure")
            assert consumer.heartbeat._held == {}
            hands.broken.clear()
            clock.move(ms=LEASE_MS + 1)
            await until(lambda: hands.ended == ["run_07_0"], what="the second try, after the lease")

    async def test_of_the_store_are_told_and_tried_again(
        self, store: RedisStore, hire: Hire, caplog: pytest.LogCaptureFixture
    ):
        class Shaky:
            failures = 64

            async def claim(self, queue: str, **how: Any) -> ClaimBatch:
                if self.failures:
                    self.failures -= 1
                    raise StoreUnreachable(reason="cut off")
                return await store.claim(queue, **how)

        await due(store, 1)
        consumer, hands = hire(of=Shaky())
        hands.gate.set()
        async with at_work(consumer):
            await until(lambda: hands.ended, what="the work, once the store is back")
        assert "claim" in caplog.messages

    async def test_of_a_part_of_it_end_it(self, hire: Hire, monkeypatch: pytest.MonkeyPatch):
        """The process must not limp along without a sweep."""

        async def dies(self: Consumer) -> None:
            raise RuntimeError("the sweep died")

        monkeypatch.setattr(Consumer, "_sweep", dies)
        consumer, _ = hire()
        with pytest.raises(ExceptionGroup):
            await consumer.run()
        assert not consumer.serving


class TestDraining:
    async def test_waits_for_what_is_underway_and_takes_nothing_new(self, store: RedisStore, hire: Hire):
        await due(store, 3)
        consumer, hands = hire(concurrency=1)
        serving = asyncio.create_task(consumer.run())
        await until(lambda: consumer.active == 1, what="the first")
        draining = asyncio.create_task(consumer.drain(20))
        await until(lambda: not consumer.serving, what="it serves no more")
        assert not draining.done()
        hands.gate.set()
        await draining
        await serving
        assert len(hands.ended) == 1
        assert await waiting(store) == 2

    async def test_leaves_what_does_not_end_in_time(self, store: RedisStore, hire: Hire):
        await due(store, 1)
        consumer, hands = hire()
        serving = asyncio.create_task(consumer.run())
        await until(lambda: consumer.active == 1, what="the first")
        await consumer.drain(0)
        await serving
        assert (consumer.active, hands.ended) == (1, [])
        hands.gate.set()
        await until(lambda: hands.ended, what="the rest")

    async def test_of_an_idle_one_ends_at_once(self, hire: Hire):
        consumer, _ = hire()
        serving = asyncio.create_task(consumer.run())
        await consumer.drain(20)
        await serving
