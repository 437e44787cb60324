"""The store: `gateway.ports.Store` on a Redis or Valkey server, a primary behind sentinels, or a cluster.

Owns what each call of the port is in commands. Must not know what documents hold. Scripts decide (commit.lua,
work.lua), `calls` repeats, `wire` carries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import cast

from gateway.errors import NotRecorded, StoreUnreachable
from gateway.partitions import PARTITIONS, partition_of
from gateway.ports import (
    ClaimBatch,
    Clock,
    Commit,
    Committed,
    DocumentId,
    Hold,
    Member,
    QueueDepth,
    Ring,
    Row,
    Stored,
    Wake,
)
from gateway.store.bell import Bell
from gateway.store.calls import Calls
from gateway.store.command import Reply, number, pack, pack_all
from gateway.store.commit import pack_commit, read_committed
from gateway.store.documents import as_int, as_text
from gateway.store.keys import keys_of
from gateway.store.nodes import Nodes
from gateway.store.work import pack_claim, read_claims, read_renewal, renewal_parts, renewals
from gateway.together import together

RING_AHEAD_MS = 2_000
"""What is due later rings nobody: everybody sweeps before, and learns the time. Also in commit.lua."""


class RedisStore:
    """Opened by `gateway.store.opening.open_store`."""

    def __init__(
        self, *, nodes: Nodes, calls: Calls, bell: Bell, clock: Clock, replicas: int, confirm_timeout_ms: int
    ) -> None:
        self._nodes = nodes
        self._calls = calls
        self._bell = bell
        self._clock = clock
        self._replicas = replicas
        self._wait = pack(b"WAIT", b"%d" % replicas, b"%d" % confirm_timeout_ms)

    async def commit(self, commit: Commit) -> Committed:
        packed = pack_commit(commit, offset_ms=self._clock.offset_ms)
        if commit.confirm and self._replicas:
            reply, acknowledged = await self._calls.confirmed(
                commit.partition, packed, self._wait, given_up=NotRecorded
            )
            confirmed = acknowledged is not None and as_int(acknowledged) >= self._replicas
        else:
            (reply,) = await self._calls.surely(commit.partition, packed, given_up=NotRecorded)
            confirmed = True
        committed = read_committed(commit, reply, confirmed=confirmed)
        self._ring(commit, committed)
        return committed

    async def load(self, ids: Sequence[DocumentId]) -> tuple[Stored | None, ...]:
        found: dict[DocumentId, Stored | None] = {}
        groups = _by_partition(ids)
        for loaded in await together([self._load_together(*group) for group in groups.items()]):
            found |= loaded
        return tuple(found[id] for id in ids)

    async def claim(self, queue: str, *, partition: int, limit: int, lease_ms: int, token: str) -> ClaimBatch:
        packed = pack_claim(
            queue,
            partition=partition,
            limit=limit,
            lease_ms=lease_ms,
            token=token,
            offset_ms=self._clock.offset_ms,
        )
        return read_claims(await self._calls.once(partition, packed, given_up=StoreUnreachable))

    async def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]:
        generations: list[int | None] = [None] * len(holds)
        groups = renewals(holds)
        offset_ms = self._clock.offset_ms
        commands = [
            pack_all(renewal_parts(group, lease_ms=lease_ms, offset_ms=offset_ms)) for group in groups
        ]
        replies = await asyncio.gather(
            *[self._read(group.partition, packed) for group, packed in zip(groups, commands, strict=True)]
        )
        for group, reply in zip(groups, replies, strict=True):
            for place, generation in zip(group.places, read_renewal(reply), strict=True):
                generations[place] = generation
        return tuple(generations)

    async def transcript(self, session: DocumentId, *, start: int = 0) -> list[bytes]:
        partition = partition_of(session)
        key = keys_of(partition).transcript + session.encode()
        return cast("list[bytes]", await self._read(partition, pack(b"LRANGE", key, b"%d" % start, b"-1")))

    async def transcript_length(self, session: DocumentId) -> int:
        partition = partition_of(session)
        key = keys_of(partition).transcript + session.encode()
        return as_int(await self._read(partition, pack(b"LLEN", key)))

    async def rows(self, partition: int, *, after: int, limit: int) -> list[Row]:
        command = pack(b"XRANGE", keys_of(partition).journal, b"(%d-0" % after, b"+", b"COUNT", b"%d" % limit)
        return [
            _row(partition, cast("list[Reply]", entry))
            for entry in cast("list[Reply]", await self._read(partition, command))
        ]

    async def members(self, index: str, *, low: int | None, high: int | None, limit: int) -> list[Member]:
        bounds = (
            number(low) or b"-inf",
            number(high) or b"+inf",
            b"WITHSCORES",
            b"LIMIT",
            b"0",
            b"%d" % limit,
        )
        replies = await asyncio.gather(
            *[
                self._read(
                    partition, pack(b"ZRANGEBYSCORE", keys_of(partition).index + index.encode(), *bounds)
                )
                for partition in range(PARTITIONS)
            ]
        )
        # Sorted runs one after the other, which is what Python's sort is quickest at.
        merged = sorted(pair for reply in replies for pair in _scored(reply))
        return [Member(member.decode(), score) for score, member in merged[:limit]]

    async def queue_depths(self, queues: Sequence[str]) -> tuple[QueueDepth, ...]:
        now = await self.now_ms()
        return tuple(await asyncio.gather(*[self._depth(queue, now) for queue in queues]))

    def listen(self) -> AsyncIterator[Ring]:
        return self._bell.listen()

    async def now_ms(self) -> int:
        seconds, microseconds = cast("list[Reply]", await self._read(0, pack(b"TIME")))
        return as_int(seconds) * 1000 + as_int(microseconds) // 1000 + self._clock.offset_ms

    async def close(self) -> None:
        await self._bell.close()
        await self._nodes.close()

    async def _read(self, partition: int, packed: bytes) -> Reply:
        (reply,) = await self._calls.surely(partition, packed, given_up=StoreUnreachable)
        return reply

    async def _load_together(self, partition: int, ids: list[DocumentId]) -> dict[DocumentId, Stored | None]:
        document = keys_of(partition).document
        commands = [pack(b"HMGET", document + id.encode(), b"v", b"d") for id in ids]
        replies = await self._calls.surely(partition, *commands, given_up=StoreUnreachable)
        return {id: _stored(id, cast("list[Reply]", reply)) for id, reply in zip(ids, replies, strict=True)}

    async def _depth(self, queue: str, now: int) -> QueueDepth:
        counts = await asyncio.gather(*[self._partition_depth(p, queue, now) for p in range(PARTITIONS)])
        oldest = min((first for _, _, first in counts if first is not None and first <= now), default=None)
        return QueueDepth(queue, sum(c[0] for c in counts), sum(c[1] for c in counts), oldest)

    async def _partition_depth(self, partition: int, queue: str, now: int) -> tuple[int, int, int | None]:
        key, _, _ = keys_of(partition).queue(queue.encode())
        waiting, due, first = await self._calls.surely(
            partition,
            pack(b"ZCARD", key),
            pack(b"ZCOUNT", key, b"-inf", b"%d" % now),
            pack(b"ZRANGE", key, b"0", b"0", b"WITHSCORES"),
            given_up=StoreUnreachable,
        )
        return as_int(waiting), as_int(due), next((score for score, _ in _scored(first)), None)

    def _ring(self, commit: Commit, committed: Committed) -> None:
        """What this commit took needs nobody else's look."""
        taken = (commit.take.queue, commit.take.member) if commit.take and committed.taken else None
        for change in commit.work:
            if (
                isinstance(change, Wake)
                and (change.queue, change.member) != taken
                and (change.at_ms is None or change.at_ms <= committed.at_ms + RING_AHEAD_MS)
            ):
                self._bell.ring(Ring(commit.partition, change.queue))


def _by_partition(ids: Sequence[DocumentId]) -> dict[int, list[DocumentId]]:
    groups: dict[int, list[DocumentId]] = {}
    for id in ids:
        groups.setdefault(partition_of(id), []).append(id)
    return groups


def _stored(id: DocumentId, fields: list[Reply]) -> Stored | None:
    version, body = fields
    return None if version is None else Stored(id, as_int(version), cast(bytes, body))


def _row(partition: int, entry: list[Reply]) -> Row:
    id, fields = entry
    _, at_ms, _, body = cast("list[Reply]", fields)
    return Row(partition, int(as_text(id).partition("-")[0]), as_int(at_ms), cast(bytes, body))


def _scored(reply: Reply) -> Iterator[tuple[int, bytes]]:
    flat = cast("list[bytes]", reply)
    return zip(map(int, flat[1::2]), flat[::2], strict=True)
