"""Commits that wake a run, and take it in the same breath for a worker of this process that has room.

Owns the shortcut past doorbell and queue. Whoever cannot take commits all the same: the run is claimed as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gateway.consumer import Consumer
from gateway.ports import Commit, Committed, Store, Take, Wake


@dataclass
class Handover:
    """For the desk and the intake. `serve` names the worker, which is built after them."""

    store: Store
    _consumer: Consumer | None = None
    _underway: set[asyncio.Task[Committed]] = field(default_factory=set[asyncio.Task[Committed]])

    def serve(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def commit(self, commit: Commit, *, first: Callable[[], None] | None = None) -> Committed:
        """As `Store.commit`. `first` is called once it is stored, before anybody works on what was taken."""
        consumer, take = self._consumer, self._take(commit)
        if consumer is None or take is None:
            committed = await self.store.commit(commit)
            _call(first, committed)
            return committed
        # A task of its own: a caller that gives up, as one whose client hung up, must not leave a claim unheld.
        task = asyncio.create_task(self._commit(replace(commit, take=take), take, consumer, first))
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)
        return await asyncio.shield(task)

    def _take(self, commit: Commit) -> Take | None:
        if self._consumer is None:
            return None
        for change in commit.work:
            if isinstance(change, Wake) and change.at_ms is None:
                take = self._consumer.take(change.queue, change.member)
                if take is not None:
                    return take
        return None

    async def _commit(
        self, commit: Commit, take: Take, consumer: Consumer, first: Callable[[], None] | None
    ) -> Committed:
        with consumer.expecting() as taken:
            committed = await self.store.commit(commit)
            _call(first, committed)
            if committed.claim is not None:
                taken(take, committed.claim)
        return committed


def _call(first: Callable[[], None] | None, committed: Committed) -> None:
    if first is not None and not committed.replayed:
        first()
