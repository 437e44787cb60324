"""Which wire leads to a partition: to the one server, to the primary that sentinels name, or to a cluster's node.

Owns the wires. Knows nothing of scripts, documents or retries.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

from gateway.partitions import PARTITIONS
from gateway.store.address import Address, Cluster, Sentinels, Server
from gateway.store.keys import keys_of
from gateway.store.links import (
    Greeting,
    Links,
    Topology,
    dial,
    links_to_node,
    links_to_primary,
    links_to_server,
)
from gateway.store.wire import Wire


class Nodes(Protocol):
    def wire(self, partition: int) -> Wire: ...

    def confirming_wire(self, partition: int) -> Wire:
        """Apart from the others, because WAIT holds up all that follows on its connection."""
        ...

    def wire_at(self, host: str, port: int) -> Wire:
        """For the one command that a cluster sends elsewhere while it moves a slot."""
        ...

    def links(self, partition: int) -> Links: ...

    def each_server(self) -> list[int]:
        """One partition of every server, to ask each of them something."""
        ...

    async def refresh(self) -> None:
        """Finds out anew which server serves what."""
        ...

    async def close(self) -> None: ...


async def open_nodes(address: Address, *, greeting: Greeting, lanes: int, patience_s: float) -> Nodes:
    match address:
        case Server():
            return _OneNode(_Lanes(links_to_server(address), greeting, lanes, patience_s))
        case Sentinels():
            return _OneNode(_Lanes(links_to_primary(address), greeting, lanes, patience_s))
        case Cluster():
            nodes = _ClusterNodes(address, greeting, lanes, patience_s)
            await nodes.refresh()
            return nodes


class _Lanes:
    """The wires to one server. Several, because a server takes only 16 kB from a connection between two fsyncs."""

    def __init__(self, links: Links, greeting: Greeting, lanes: int, patience_s: float) -> None:
        self.links = links
        wire = partial(Wire, partial(dial, links, greeting), patience_s=patience_s)
        self.shared = [wire() for _ in range(lanes)]
        self.confirming = [wire() for _ in range(lanes)]

    async def close(self) -> None:
        await asyncio.gather(*[wire.close() for wire in (*self.shared, *self.confirming)])
        await self.links.close()


class _OneNode:
    def __init__(self, lanes: _Lanes) -> None:
        self._lanes = lanes

    def wire(self, partition: int) -> Wire:
        shared = self._lanes.shared
        return shared[partition % len(shared)]

    def confirming_wire(self, partition: int) -> Wire:
        confirming = self._lanes.confirming
        return confirming[partition % len(confirming)]

    def wire_at(self, host: str, port: int) -> Wire:
        return self._lanes.shared[0]

    def links(self, partition: int) -> Links:
        return self._lanes.links

    def each_server(self) -> list[int]:
        return [0]

    async def refresh(self) -> None:
        """Nothing to do: every dialling finds the primary, by its name or through the sentinels."""

    async def close(self) -> None:
        await self._lanes.close()


class _ClusterNodes:
    def __init__(self, cluster: Cluster, greeting: Greeting, lanes: int, patience_s: float) -> None:
        self._cluster = cluster
        self._topology = Topology(cluster)
        self._new_lanes = partial(_Lanes, greeting=greeting, lanes=lanes, patience_s=patience_s)
        self._lanes: dict[tuple[str, int], _Lanes] = {}
        self._places: list[tuple[str, int]] = []
        self._refreshing: asyncio.Task[None] | None = None

    def wire(self, partition: int) -> Wire:
        shared = self._lanes_at(self._places[partition]).shared
        return shared[partition % len(shared)]

    def confirming_wire(self, partition: int) -> Wire:
        confirming = self._lanes_at(self._places[partition]).confirming
        return confirming[partition % len(confirming)]

    def wire_at(self, host: str, port: int) -> Wire:
        return self._lanes_at((host, port)).shared[0]

    def links(self, partition: int) -> Links:
        return self._lanes_at(self._places[partition]).links

    def each_server(self) -> list[int]:
        return [self._places.index(place) for place in set(self._places)]

    async def refresh(self) -> None:
        """All who find the map outdated at once wait for one new map."""
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(self._refreshed)
        await asyncio.shield(self._refreshing)

    async def close(self) -> None:
        if self._refreshing:
            self._refreshing.cancel()
        await asyncio.gather(*[lanes.close() for lanes in self._lanes.values()])
        await self._topology.close()

    async def _refresh(self) -> None:
        await self._topology.refresh()
        self._places = [
            self._topology.node_of(keys_of(partition).identity) for partition in range(PARTITIONS)
        ]

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()

    def _lanes_at(self, place: tuple[str, int]) -> _Lanes:
        if place not in self._lanes:
            self._lanes[place] = self._new_lanes(links_to_node(*place, self._cluster.login))
        return self._lanes[place]
