"""Who is measured and how: the same cycles for everybody, one after the other, in every repetition afresh.

Owns the taking of time. A rate is cycles over a fixed time, at one by one and at many at once; a ratio is always of two
rates of the same repetition, since absolute figures move with the machine.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

TASKS = 64

Cycle = Callable[[str], Awaitable[None]]
"""Pause, decide and resume once, in the session of this name."""


class Contestant(Protocol):
    @property
    def name(self) -> str: ...

    def opened(self) -> AbstractAsyncContextManager[Cycle]: ...


@dataclass(frozen=True, slots=True)
class Rates:
    """Cycles per second of one contestant in one repetition, and what a cycle took at worst of a hundred."""

    sequential: float
    together: float
    p99_ms: float


async def repetition(contestants: Sequence[Contestant], number: int, seconds: float) -> dict[str, Rates]:
    """Everybody once; who begins changes from one repetition to the next."""
    start = number % len(contestants)
    order = [*contestants[start:], *contestants[:start]]
    return {each.name: await _rates(each, number, seconds) for each in order}


async def _rates(contestant: Contestant, number: int, seconds: float) -> Rates:
    async with contestant.opened() as cycle:
        names = (f"{contestant.name}-{number}-{n}-{time.time_ns()}" for n in itertools.count())
        for _ in range(5):
            await cycle(next(names))
        gc.collect()
        alone = await _timed(cycle, names, tasks=1, seconds=seconds)
        gc.collect()
        together = await _timed(cycle, names, tasks=TASKS, seconds=seconds)
    return Rates(alone.rate, together.rate, _p99(together.took) * 1000)


@dataclass(frozen=True, slots=True)
class _Timed:
    rate: float
    took: list[float]


async def _timed(cycle: Cycle, names: Iterator[str], *, tasks: int, seconds: float) -> _Timed:
    took: list[float] = []
    began = time.perf_counter()

    async def one() -> None:
        while (start := time.perf_counter()) - began < seconds:
            await cycle(next(names))
            took.append(time.perf_counter() - start)

    await asyncio.gather(*[one() for _ in range(tasks)])
    return _Timed(len(took) / (time.perf_counter() - began), took)


def _p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98] if len(took) > 1 else took[0]
