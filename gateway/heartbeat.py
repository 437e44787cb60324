"""Keeps this process's claims alive, from a thread of its own, and ends the process when it cannot.

Owns which claims are held and until when, by the monotonic clock. A loop that is blocked by a tool still renews; a
process that was stopped, or cut off from the store, ends before somebody else takes over its work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.errors import Retryable
from gateway.ports import Clock, Hold


class Renewer(Protocol):
    """The blocking client of the heartbeat's thread."""

    def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]: ...

    def close(self) -> None: ...


@dataclass
class Held:
    """A claim of ours: alive until `until` (monotonic seconds); `moved` is called when somebody wants something."""

    hold: Hold
    until: float
    generation: int
    moved: Callable[[int | None], None] | None = None


@dataclass
class Heartbeat:
    """All claims of this process. `give_up` ends the process; it is called from the thread."""

    instance: str
    renewer: Renewer
    clock: Clock
    lease_ms: int
    give_up: Callable[[], None]
    _held: dict[Hold, Held] = field(default_factory=dict[Hold, Held])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.renewer.close()

    def hold(self, hold: Hold, until: float, generation: int) -> None:
        with self._lock:
            self._held[hold] = Held(hold, until, generation)

    def watch(self, hold: Hold, moved: Callable[[int | None], None]) -> None:
        """Be told, on the event loop, when the member's generation moved, or (None) when the claim is lost."""
        with self._lock:
            held = self._held.get(hold)
            if held is not None:
                held.moved = moved

    def let_go(self, hold: Hold) -> None:
        with self._lock:
            self._held.pop(hold, None)

    def alive(self, hold: Hold) -> bool:
        """Whether the claim surely still lives, by the monotonic clock."""
        with self._lock:
            held = self._held.get(hold)
        return held is not None and self.clock.monotonic() < held.until

    def _beat(self) -> None:
        while not self._stop.wait(self.lease_ms / 4000):
            asked_at = self.clock.monotonic()
            with self._lock:
                held = list(self._held.values())
            try:
                generations = (
                    self.renewer.renew([h.hold for h in held], lease_ms=self.lease_ms) if held else ()
                )
            except Retryable:
                self._check_expiry(held)
                continue
            self._renewed(held, generations, asked_at + self.lease_ms / 1000)

    def _renewed(self, held: Sequence[Held], generations: Sequence[int | None], until: float) -> None:
        for each, generation in zip(held, generations, strict=True):
            if generation is None:
                self.let_go(each.hold)
                self._tell(each, None)
                continue
            each.until = until
            if generation != each.generation:
                each.generation = generation
                self._tell(each, generation)

    def _tell(self, held: Held, generation: int | None) -> None:
        if held.moved is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(held.moved, generation)

    def _check_expiry(self, held: Sequence[Held]) -> None:
        """A claim that cannot be renewed is about to end: end the process first. A quarter of the lease is margin."""
        soon = self.clock.monotonic() + self.lease_ms / 4000
        with self._lock:
            running_out = any(each.until < soon for each in held if each.hold in self._held)
        if running_out:
            self.give_up()
