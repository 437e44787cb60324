"""Awaiting several things at once, and one thing without the cost of a task. Owns nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, in order. A single piece of work, the usual case, runs in the caller's own task."""
    if len(work) == 1:
        return [await work[0]]
    return await asyncio.gather(*work)
