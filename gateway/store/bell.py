"""The doorbell: says that a queue is worth a look, to this process at once and to others by pub/sub.

Owns the subscription and who listens. It only saves latency: rings get lost, and nothing depends on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from redis.exceptions import RedisError

from gateway.errors import SignoffError, StoreUnreachable
from gateway.ports import Ring
from gateway.store.command import pack
from gateway.store.keys import BELL
from gateway.store.links import Greeting, Links, dial
from gateway.store.wire import Link

_PAUSE_S = 0.5


class Bell:
    def __init__(self, links: Links, greeting: Greeting) -> None:
        self._links = links
        self._greeting = greeting
        self._listeners: set[_Listener] = set()
        self._hearing: asyncio.Task[None] | None = None
        self._closed = False

    def ring(self, ring: Ring) -> None:
        """To the listeners of this process, without a way through the server."""
        for listener in self._listeners:
            listener.hear(ring)

    async def listen(self) -> AsyncIterator[Ring]:
        """Raises StoreUnreachable once it is closed: nobody would close what it opens now."""
        if self._closed:
            raise StoreUnreachable(reason="this process closed its store")
        listener = _Listener()
        self._listeners.add(listener)
        if self._hearing is None:
            self._hearing = asyncio.create_task(self._hear_others(), name="store bell")
        try:
            while True:
                for ring in await listener.heard():
                    yield ring
        finally:
            self._listeners.discard(listener)

    async def close(self) -> None:
        self._closed = True
        if self._hearing:
            self._hearing.cancel()
            await asyncio.wait({self._hearing})

    async def _hear_others(self) -> None:
        while True:
            try:
                link = await dial(self._links, self._greeting)
                try:
                    await self._subscribe(link)
                finally:
                    await link.disconnect(nowait=True)
            except (RedisError, OSError, SignoffError):
                # Whoever needs the store sees the same with its next call and says so.
                await asyncio.sleep(_PAUSE_S)

    async def _subscribe(self, link: Link) -> None:
        await link.send_packed_command(pack(b"SUBSCRIBE", BELL), check_health=False)
        while True:
            kind, _, payload = await link.read_response(disable_decoding=True, timeout=float("inf"))
            if kind == b"message":
                self._heard(cast(bytes, payload))

    def _heard(self, payload: bytes) -> None:
        """Anybody may publish there: what is not a ring is nothing."""
        partition, _, queue = payload.decode(errors="replace").partition(" ")
        if partition.isdecimal():
            self.ring(Ring(int(partition), queue))


class _Listener:
    """Keeps each ring once, however often it is heard before anybody asks."""

    def __init__(self) -> None:
        self._rings: dict[Ring, None] = {}
        self._some = asyncio.Event()

    def hear(self, ring: Ring) -> None:
        self._rings[ring] = None
        self._some.set()

    async def heard(self) -> list[Ring]:
        await self._some.wait()
        self._some.clear()
        rings, self._rings = list(self._rings), {}
        return rings
