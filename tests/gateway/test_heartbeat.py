"""Claims stay alive whatever the event loop does; and the process ends before somebody else takes them over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from gateway.errors import StoreUnreachable
from gateway.heartbeat import Heartbeat
from gateway.ports import Hold
from tests.support.clock import ManualClock

LEASE_MS = 30_000
HOUR_MS = 3_600_000
PATIENCE_S = 20.0
ONE, TWO = Hold("runs:a", "run_07_1", "t1"), Hold("runs:a", "run_07_2", "t2")


class Pulse(threading.Event):
    """In the place of the time between two beats: it passes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.every: float | None = None
        self._go, self._over = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self, timeout: float | None = None) -> bool:
        self.every = timeout
        self._over.release()
        self._go.acquire()
        return self.is_set()

    def set(self) -> None:
        super().set()
        self._go.release()

    def await_start(self) -> None:
        assert self._over.acquire(timeout=PATIENCE_S), "the heartbeat's thread does not start"

    def beat(self) -> None:
        """One beat, to its end. Blocks the event loop, as a tool does that forgot to be asynchronous."""
        self._go.release()
        assert self._over.acquire(timeout=PATIENCE_S), "the beat does not end"


@dataclass
class Store:
    """The store's side: each hold's generation, None for one that is lost."""

    generations: dict[Hold, int | None] = field(default_factory=dict[Hold, "int | None"])
    reachable: bool = True
    asked: list[tuple[Hold, ...]] = field(default_factory=list[tuple[Hold, ...]])
    threads: set[str] = field(default_factory=set[str])
    during: Callable[[], object] = int
    lease_ms: int = LEASE_MS
    closed: bool = False

    def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]:
        assert lease_ms == self.lease_ms
        self.asked.append(tuple(holds))
        self.threads.add(threading.current_thread().name)
        self.during()
        if not self.reachable:
            raise StoreUnreachable(reason="cut off")
        return tuple(self.generations.get(hold) for hold in holds)

    def close(self) -> None:
        self.closed = True


@dataclass
class Ward:
    """A heartbeat at work, and its surroundings."""

    heartbeat: Heartbeat
    store: Store
    clock: ManualClock
    pulse: Pulse
    gave_up: list[str] = field(default_factory=list[str])

    def hold(self, hold: Hold, *, generation: int = 1, for_ms: int = LEASE_MS) -> None:
        self.store.generations[hold] = generation
        self.heartbeat.hold(hold, self.clock.monotonic() + for_ms / 1000, generation)

    def beat(self) -> tuple[Hold, ...]:
        """What was asked for in one beat."""
        before = len(self.store.asked)
        self.pulse.beat()
        return self.store.asked[-1] if len(self.store.asked) > before else ()


@asynccontextmanager
async def beating() -> AsyncIterator[Ward]:
    store, clock, pulse = Store(), ManualClock(), Pulse()
    gave_up: list[str] = []
    heartbeat = Heartbeat(
        "i", store, clock, LEASE_MS, lambda: gave_up.append(threading.current_thread().name), _stop=pulse
    )
    heartbeat.start()
    pulse.await_start()
    try:
        yield Ward(heartbeat, store, clock, pulse, gave_up)
    finally:
        heartbeat.stop()
        assert store.closed
        assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]


def unwanted(generation: int | None) -> None:
    pytest.fail(f"told of {generation}")


class TestRenewing:
    async def test_asks_for_all_claims_and_for_none_that_was_let_go(self):
        async with beating() as ward:
            ward.hold(ONE)
            ward.hold(TWO)
            assert set(ward.beat()) == {ONE, TWO}
            ward.heartbeat.let_go(ONE)
            assert ward.beat() == (TWO,)

    async def test_asks_nothing_while_nothing_is_held(self):
        async with beating() as ward:
            assert ward.beat() == ()
            assert ward.store.asked == []

    async def test_four_times_a_lease(self):
        async with beating() as ward:
            assert ward.pulse.every == LEASE_MS / 1000 / 4

    async def test_keeps_a_claim_for_another_lease(self):
        async with beating() as ward:
            ward.hold(ONE)
            for _ in range(10):
                ward.clock.move(ms=LEASE_MS // 2)
                ward.beat()
                assert ward.heartbeat.alive(ONE)
            ward.clock.move(ms=LEASE_MS)
            assert not ward.heartbeat.alive(ONE)

    async def test_counts_the_lease_from_before_it_asked(self):
        """The store may have renewed it right then: a slow answer makes no lease longer."""
        async with beating() as ward:
            ward.hold(ONE)
            ward.store.during = lambda: ward.clock.move(ms=LEASE_MS)
            ward.beat()
            assert not ward.heartbeat.alive(ONE)

    async def test_goes_on_in_a_thread_of_its_own_while_the_loop_is_blocked(self):
        async with beating() as ward:
            ward.hold(ONE)
            assert [ward.beat() for _ in range(3)] == [(ONE,)] * 3
            assert ward.store.threads == {"heartbeat"}

    async def test_takes_up_what_is_held_while_it_asks(self):
        async with beating() as ward:
            ward.hold(ONE)
            ward.store.during = lambda: ward.hold(TWO)
            assert ward.beat() == (ONE,)
            ward.store.during = int
            assert set(ward.beat()) == {ONE, TWO}

    async def test_comes_by_itself(self):
        """With the real time between beats, for once."""
        beat = threading.Event()
        store = Store(generations={ONE: 1}, during=beat.set, lease_ms=4)
        heartbeat = Heartbeat("i", store, ManualClock(), 4, lambda: None)
        heartbeat.hold(ONE, 1e12, 1)
        heartbeat.start()
        assert await asyncio.to_thread(beat.wait, PATIENCE_S)
        heartbeat.stop()


class TestTelling:
    async def test_that_somebody_wants_something_on_the_loop_and_once(self):
        async with beating() as ward:
            told: list[tuple[int | None, str]] = []
            ward.hold(ONE, generation=1)
            ward.heartbeat.watch(ONE, lambda g: told.append((g, threading.current_thread().name)))
            ward.beat()
            await asyncio.sleep(0)
            assert told == [], "nothing moved"
            ward.store.generations[ONE] = 2
            ward.beat()
            assert told == [], "told in the heartbeat's thread"
            ward.beat()
            await asyncio.sleep(0)
            assert told == [(2, threading.current_thread().name)]
            ward.store.generations[ONE] = 5
            ward.beat()
            await asyncio.sleep(0)
            assert [generation for generation, _ in told] == [2, 5]

    async def test_that_the_claim_is_lost_and_asks_for_it_no_more(self):
        async with beating() as ward:
            told: list[int | None] = []
            ward.hold(ONE)
            ward.hold(TWO)
            ward.heartbeat.watch(ONE, told.append)
            ward.heartbeat.watch(TWO, unwanted)
            ward.store.generations[ONE] = None
            ward.beat()
            await asyncio.sleep(0)
            assert told == [None]
            assert not ward.heartbeat.alive(ONE)
            assert ward.heartbeat.alive(TWO)
            assert ward.beat() == (TWO,)
            assert ward.gave_up == [], "one lost claim is no reason to end the process"

    async def test_nobody_who_does_not_watch(self):
        async with beating() as ward:
            ward.hold(ONE)
            ward.heartbeat.watch(TWO, unwanted)
            ward.store.generations |= {ONE: 2, TWO: 2}
            ward.beat()
            assert ward.heartbeat.alive(ONE)

    async def test_nobody_of_a_claim_that_was_let_go(self):
        async with beating() as ward:
            ward.hold(ONE)
            ward.heartbeat.watch(ONE, unwanted)
            ward.heartbeat.let_go(ONE)
            ward.store.generations[ONE] = None
            ward.beat()
            await asyncio.sleep(0)


class TestTheStoreCutOff:
    async def test_ends_the_process_before_the_first_lease_does(self):
        async with beating() as ward:
            ward.hold(ONE, for_ms=2 * HOUR_MS)
            ward.hold(TWO, for_ms=9 * HOUR_MS)
            ward.store.reachable = False
            ward.clock.move(ms=HOUR_MS)
            ward.beat()
            assert ward.gave_up == [], "too early: both claims are ours"
            ward.clock.move(ms=HOUR_MS - LEASE_MS // 4)
            assert ward.heartbeat.alive(ONE), "this is about what is done while the claim still lives"
            ward.beat()
            assert ward.gave_up == ["heartbeat"]

    async def test_for_a_moment_ends_nothing(self):
        async with beating() as ward:
            ward.hold(ONE)
            ward.store.reachable = False
            ward.clock.move(ms=LEASE_MS // 4)
            ward.beat()
            ward.store.reachable = True
            ward.beat()
            ward.store.reachable = False
            ward.clock.move(ms=LEASE_MS // 2)
            ward.beat()
            assert ward.gave_up == []

    async def test_ends_nothing_for_a_claim_that_was_let_go(self):
        async with beating() as ward:
            ward.hold(ONE, for_ms=0)
            ward.hold(TWO, for_ms=HOUR_MS)
            ward.heartbeat.let_go(ONE)
            ward.store.reachable = False
            ward.beat()
            assert ward.gave_up == []

    async def test_ends_nothing_for_a_claim_that_was_let_go_while_it_asked(self):
        async with beating() as ward:
            ward.hold(ONE, for_ms=0)
            ward.store.reachable = False
            ward.store.during = lambda: ward.heartbeat.let_go(ONE)
            ward.beat()
            assert ward.gave_up == []

    async def test_while_the_process_stood_still_ends_it_at_its_first_beat(self):
        """The work is somebody else's by now."""
        async with beating() as ward:
            ward.hold(ONE)
            ward.beat()
            ward.store.reachable = False
            ward.clock.move(ms=HOUR_MS)
            ward.beat()
            assert ward.gave_up == ["heartbeat"]


class TestAlive:
    async def test_is_a_claim_until_its_lease_ends_by_the_monotonic_clock(self):
        async with beating() as ward:
            ward.hold(ONE, for_ms=HOUR_MS)
            assert ward.heartbeat.alive(ONE)
            ward.clock.move(ms=HOUR_MS)
            assert not ward.heartbeat.alive(ONE)

    async def test_is_none_that_is_not_held(self):
        async with beating() as ward:
            assert not ward.heartbeat.alive(ONE)
            ward.hold(ONE)
            ward.heartbeat.let_go(ONE)
            ward.heartbeat.let_go(ONE)
            assert not ward.heartbeat.alive(ONE)
