"""A store that tells when a run asks and when it ends, so that nobody has to ask the store for it.

Owns the watching. Every call goes through as it is; commits are looked at on their way back.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.ids import AskId
from gateway.partitions import kind_of
from gateway.ports import (
    ClaimBatch,
    Commit,
    Committed,
    DocumentId,
    Hold,
    IndexPut,
    IndexRemove,
    Member,
    QueueDepth,
    Ring,
    Row,
    Store,
    Stored,
)
from gateway.queues import ACTIVE_RUNS, OPEN_ASKS


@dataclass
class Witness:
    """`gateway.ports.Store` around another."""

    store: Store
    calls: Counter[str] = field(default_factory=Counter[str])
    _asked: dict[str, asyncio.Future[AskId]] = field(default_factory=dict[str, asyncio.Future[AskId]])
    _ended: dict[str, asyncio.Future[None]] = field(default_factory=dict[str, asyncio.Future[None]])

    async def asked(self, run: str) -> AskId:
        """The first ask of a run, once it is stored."""
        try:
            return await self._asked.setdefault(run, _future())
        finally:
            del self._asked[run]

    async def ended(self, run: str) -> None:
        try:
            await self._ended.setdefault(run, _future())
        finally:
            del self._ended[run]

    async def commit(self, commit: Commit) -> Committed:
        self.calls["commit"] += 1
        committed = await self.store.commit(commit)
        for change in commit.index:
            match change:
                case IndexPut(index=index, member=ask) if index == OPEN_ASKS:
                    self._see_asked(commit, AskId(DocumentId(ask)))
                case IndexRemove(index=index, member=run) if index == ACTIVE_RUNS:
                    _settle(self._ended.setdefault(run, _future()), None)
                case _:
                    pass
        return committed

    def _see_asked(self, commit: Commit, ask: AskId) -> None:
        run = next((write.id for write in commit.writes if kind_of(write.id) == "run"), None)
        if run is not None:
            _settle(self._asked.setdefault(run, _future()), ask)

    async def load(self, ids: Sequence[DocumentId]) -> tuple[Stored | None, ...]:
        self.calls["load"] += 1
        return await self.store.load(ids)

    async def claim(self, queue: str, *, partition: int, limit: int, lease_ms: int, token: str) -> ClaimBatch:
        self.calls["claim"] += 1
        return await self.store.claim(queue, partition=partition, limit=limit, lease_ms=lease_ms, token=token)

    async def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]:
        return await self.store.renew(holds, lease_ms=lease_ms)

    async def transcript(self, session: DocumentId, *, start: int = 0) -> list[bytes]:
        self.calls["transcript"] += 1
        return await self.store.transcript(session, start=start)

    async def transcript_length(self, session: DocumentId) -> int:
        return await self.store.transcript_length(session)

    async def rows(self, partition: int, *, after: int, limit: int) -> list[Row]:
        return await self.store.rows(partition, after=after, limit=limit)

    async def members(self, index: str, *, low: int | None, high: int | None, limit: int) -> list[Member]:
        return await self.store.members(index, low=low, high=high, limit=limit)

    async def queue_depths(self, queues: Sequence[str]) -> tuple[QueueDepth, ...]:
        return await self.store.queue_depths(queues)

    def listen(self) -> AsyncIterator[Ring]:
        return self.store.listen()

    async def now_ms(self) -> int:
        return await self.store.now_ms()

    async def close(self) -> None:
        await self.store.close()


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


def _settle(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)
