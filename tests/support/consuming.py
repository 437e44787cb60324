"""A consumer at work in a test: with a heartbeat that nobody needs, and a store that can be made to misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from gateway.consumer import Consumer
from gateway.heartbeat import Heartbeat
from gateway.ports import Clock, Commit, Committed, Hold, Store


class NoRenewer:
    """No lease of a test ends unless the clock is moved."""

    def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]:
        raise AssertionError("this heartbeat is not started")

    def close(self) -> None:
        pass


def resting(clock: Clock, instance: str = "instance") -> Heartbeat:
    """A heartbeat that keeps the books and does not beat."""
    return Heartbeat(instance, NoRenewer(), clock, 30_000, lambda: None)


@asynccontextmanager
async def at_work(*consumers: Consumer) -> AsyncIterator[None]:
    """All of them serve until the context ends; one that dies fails the test."""
    tasks = [asyncio.create_task(consumer.run()) for consumer in consumers]
    try:
        yield
    finally:
        for consumer in consumers:
            await consumer.drain(5)
        for task in tasks:
            if not task.done():
                task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class Meddling:
    """A store where something happens before a commit arrives there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: Callable[[Commit], Awaitable[None]] = _nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> Committed:
        await self.before(commit)
        return await self._store.commit(commit)


def meddling(store: Store) -> tuple[Store, Meddling]:
    """The same twice: once as the store that the part under test gets."""
    between = Meddling(store)
    return cast(Store, between), between


async def _nothing(commit: Commit) -> None:
    pass
