"""Takes due work from queues and hands it out, a bounded number at a time.

Owns when to look (doorbells, due times, a sweep for what was missed), claiming, and draining. Knows nothing of what the
work is: runs, surfaces and timers each bring a handler.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex

from gateway.errors import StoreUnreachable
from gateway.heartbeat import Heartbeat
from gateway.partitions import PARTITIONS
from gateway.ports import Claimed, Clock, Hold, Store, Take
from gateway.telemetry import logger

SWEEP_SECONDS = 1.0
"""A doorbell may be lost; whatever is due is found this late at most."""
EXPECT_SECONDS = 0.05
"""While draining, how often to look whether a commit that is underway brought a claim."""
MOST_AT_ONCE = 16
"""Claims taken from one partition in one go, so that several processes share a backlog."""

Handler = Callable[[Claimed, Hold], Awaitable[None]]
Place = tuple[str, int]
"""A queue in a partition."""


@dataclass
class Consumer:
    """One kind of work. `handle` ends each claim it gets, by a commit with a release or by letting it run out."""

    store: Store
    clock: Clock
    heartbeat: Heartbeat
    queues: Sequence[str]
    handle: Handler
    lease_ms: int
    concurrency: int
    partitions: Sequence[int] = range(PARTITIONS)
    _ready: set[Place] = field(default_factory=set[Place])
    _due: dict[Place, int] = field(default_factory=dict[Place, int])
    _active: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _expected: int = 0
    """Claims that may come with a commit which is underway."""
    _bell: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: bool = False
    _serving: bool = False
    _nonce: str = field(default_factory=token_hex)
    """Makes tokens, and the operation ids made of them, this consumer's alone, in whatever process it lives."""
    _serial: itertools.count[int] = field(default_factory=itertools.count)

    async def run(self) -> None:
        """Serve until `drain`. A background part that dies takes the process's main task down with it."""
        self._ready.update((queue, partition) for queue in self.queues for partition in self.partitions)
        self._bell.set()
        self._serving = True
        try:
            async with asyncio.TaskGroup() as parts:
                sweeping = parts.create_task(self._sweep())
                await self._serve()
                sweeping.cancel()
        finally:
            self._serving = False

    def ring(self, queue: str, partition: int) -> None:
        """Somebody should look there."""
        if queue in self.queues:
            self._ready.add((queue, partition))
            self._bell.set()

    async def drain(self, seconds: float) -> None:
        """Take nothing new, and wait for what is underway; what is not done by then is left to its lease."""
        self._stopping = True
        self._bell.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._active or self._expected:
                    await (asyncio.wait(self._active) if self._active else asyncio.sleep(EXPECT_SECONDS))

    @property
    def serving(self) -> bool:
        return self._serving

    @property
    def active(self) -> int:
        return len(self._active)

    def take(self, queue: str, member: str) -> Take | None:
        """How a commit that wakes this member takes it for us; None if we do not serve it, or have no room."""
        if not self._serving or self._stopping or self._free <= 0 or queue not in self.queues:
            return None
        return Take(queue, member, self._token(), self.lease_ms)

    @contextmanager
    def expecting(self) -> Generator[Callable[[Take, Claimed], None]]:
        """While a commit with a `take` is underway, its place is kept. Call what it gives with the claim that came."""
        asked_at = self.clock.monotonic()
        self._expected += 1
        try:
            yield lambda take, claim: self._begin(
                claim, Hold(take.queue, take.member, take.token), asked_at + take.lease_ms / 1000
            )
        finally:
            self._expected -= 1
            self._bell.set()

    def _begin(self, claim: Claimed, hold: Hold, until: float) -> None:
        self.heartbeat.hold(hold, until, claim.generation)
        task = asyncio.create_task(self._handle(claim, hold))
        self._active.add(task)
        task.add_done_callback(self._ended)

    async def _serve(self) -> None:
        while not self._stopping:
            await self._bell.wait()
            self._bell.clear()
            while not self._stopping and self._ready and self._free:
                await self._look()

    @property
    def _free(self) -> int:
        return self.concurrency - len(self._active) - self._expected

    def _token(self) -> str:
        return f"{self._nonce}/{next(self._serial)}"

    async def _look(self) -> None:
        places = [self._ready.pop() for _ in range(min(len(self._ready), self._free, PARTITIONS))]
        limit = min(MOST_AT_ONCE, max(1, self._free // len(places)))
        await asyncio.gather(*(self._claim(place, limit) for place in places))

    async def _claim(self, place: Place, limit: int) -> None:
        queue, partition = place
        token = self._token()
        asked_at = self.clock.monotonic()
        try:
            batch = await self.store.claim(
                queue, partition=partition, limit=limit, lease_ms=self.lease_ms, token=token
            )
        except StoreUnreachable as error:
            logger.warning("claim", queue=queue, reason=error.reason)
            return
        for claim in batch.claims:
            self._begin(claim, Hold(queue, claim.member, token), asked_at + self.lease_ms / 1000)
        self._schedule(place, batch.next_due_ms, batch.at_ms)

    def _schedule(self, place: Place, next_due_ms: int | None, now_ms: int) -> None:
        self._due.pop(place, None)
        if next_due_ms is None:
            return
        if next_due_ms <= now_ms:
            self._ready.add(place)
            self._bell.set()
            return
        self._due[place] = next_due_ms

    async def _handle(self, claim: Claimed, hold: Hold) -> None:
        try:
            await self.handle(claim, hold)
        finally:
            self.heartbeat.let_go(hold)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._active.discard(task)
        self._bell.set()
        if not task.cancelled() and task.exception() is not None:
            logger.error("work", problem=type(task.exception()).__name__, exc_info=task.exception())

    async def _sweep(self) -> None:
        """Look where something has become due; now and then look everywhere, since doorbells may be lost."""
        for round_ in itertools.count(1):
            await asyncio.sleep(SWEEP_SECONDS / 10)
            now = self.clock.now_ms()
            due = [place for place, at in self._due.items() if at <= now]
            self._ready.update(due)
            if round_ % 10 == 0:
                self._ready.update(
                    (queue, partition) for queue in self.queues for partition in self.partitions
                )
            if self._ready:
                self._bell.set()
