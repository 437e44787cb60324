"""How a store is opened: the servers are checked, the store is named once, and every later connection meets it again.

Owns the order of the start. A server that would lose decisions stops it; a server that comes back empty, or as
another store, is refused by every new connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from secrets import token_hex
from typing import cast

from redis.exceptions import AskError, MovedError, RedisError

from gateway.errors import StoreDamaged, StoreRefused, StoreUnreachable
from gateway.partitions import PARTITIONS
from gateway.ports import Clock
from gateway.store.address import parse_address
from gateway.store.bell import Bell
from gateway.store.calls import Calls
from gateway.store.checks import (
    check_allowed_names,
    check_identity,
    check_permissions,
    check_server,
    read_facts,
)
from gateway.store.command import Reply, pack
from gateway.store.documents import as_text
from gateway.store.keys import keys_of
from gateway.store.links import ask
from gateway.store.nodes import Nodes, open_nodes
from gateway.store.redis import RedisStore
from gateway.store.scripts import PERMITTED, SCRIPTS
from gateway.store.wire import Link

LANES = 4
"""Connections to a server. More batches fit between two fsyncs, at more work for the loop: measured in store_floor."""
PATIENCE_S = 2.0


async def open_store(
    url: str,
    *,
    clock: Clock,
    replicas: int = 0,
    confirm_timeout_ms: int = 1_000,
    allow_unsafe: Sequence[str] = (),
    insist_s: float = 5.0,
    patience_s: float = PATIENCE_S,
    lanes: int = LANES,
) -> RedisStore:
    """Raises StoreRefused for what must not be used, StoreUnreachable if nothing answers."""
    check_allowed_names(allow_unsafe)
    greeting = _Greeting()
    # Replicas answer on the server's connection, so both waits add up.
    patience_s += confirm_timeout_ms / 1000 if replicas else 0
    nodes = await _open_nodes(url, greeting, lanes, patience_s)
    try:
        calls = Calls(nodes, insist_s=insist_s)
        for partition in nodes.each_server():
            await _check(calls, partition, allow_unsafe)
        greeting.known = await _identify(calls)
    except BaseException:
        await nodes.close()
        raise
    bell = Bell(nodes.links(0), greeting)
    return RedisStore(
        nodes=nodes,
        calls=calls,
        bell=bell,
        clock=clock,
        replicas=replicas,
        confirm_timeout_ms=confirm_timeout_ms,
    )


class _Greeting:
    """Said first on every connection: teaches the server the scripts, and asks it who it is."""

    def __init__(self) -> None:
        self.known: str | None = None

    async def __call__(self, link: Link) -> None:
        for script in SCRIPTS:
            await ask(link, b"SCRIPT", b"LOAD", script.text)
        if self.known is not None:
            await self._recognize(link)

    async def _recognize(self, link: Link) -> None:
        """Asks for any partition that this server has: in a cluster, the first that it does not send elsewhere."""
        for partition in range(PARTITIONS):
            try:
                check_identity(_name(await ask(link, b"GET", keys_of(partition).identity)), self.known)
            except (MovedError, AskError):
                continue
            return


async def _open_nodes(url: str, greeting: _Greeting, lanes: int, patience_s: float) -> Nodes:
    address = parse_address(url)
    try:
        return await open_nodes(address, greeting=greeting, lanes=lanes, patience_s=patience_s)
    except (RedisError, OSError) as error:
        raise StoreUnreachable(reason=str(error)) from error


async def _check(calls: Calls, partition: int, allow_unsafe: Sequence[str]) -> None:
    (info,) = await calls.surely(partition, pack(b"INFO"), given_up=StoreUnreachable)
    check_server(read_facts(cast(bytes, info), await _save(calls, partition)), allow_unsafe=allow_unsafe)
    permitted = pack(b"EVAL", PERMITTED, b"1", keys_of(partition).identity)
    (refused,) = await calls.surely(partition, permitted, given_up=StoreUnreachable)
    check_permissions([as_text(command) for command in cast("list[Reply]", refused)])


async def _save(calls: Calls, partition: int) -> str | None:
    """Hosted servers forbid CONFIG; then only an append-only file, which INFO tells of, counts."""
    try:
        (reply,) = await calls.surely(partition, pack(b"CONFIG", b"GET", b"save"), given_up=StoreUnreachable)
    except (StoreRefused, StoreDamaged):
        return None
    fields = cast("list[Reply]", reply)
    return as_text(fields[1]) if len(fields) == 2 else None


async def _identify(calls: Calls) -> str:
    """The name that the store got at its first start. Partition 0 is named last, so it says that all are named."""
    first, *others = await _names(calls, [_get(partition) for partition in range(PARTITIONS)])
    if first is None:
        return await _name_all(calls)
    check_identity(first, None)
    for other in others:
        check_identity(other, first)
    return first


async def _name_all(calls: Calls) -> str:
    """Whoever names the last partition first names them all, if several processes start at once."""
    last = PARTITIONS - 1
    own = f"{token_hex(8)} {PARTITIONS}"
    name = (await _names(calls, [(last, _set(last, own))]))[0] or own
    for partitions in (range(1, last), range(1)):
        found = await _names(calls, [(partition, _set(partition, name)) for partition in partitions])
        for other in found:
            check_identity(other or name, name)
    return name


def _get(partition: int) -> tuple[int, bytes]:
    return partition, pack(b"GET", keys_of(partition).identity)


def _set(partition: int, name: str) -> bytes:
    """Answers with the name that was there; None if this one is set now."""
    return pack(b"SET", keys_of(partition).identity, name.encode(), b"NX", b"GET")


async def _names(calls: Calls, commands: Sequence[tuple[int, bytes]]) -> list[str | None]:
    asked = [calls.surely(partition, packed, given_up=StoreUnreachable) for partition, packed in commands]
    return [_name(reply) for (reply,) in await asyncio.gather(*asked)]


def _name(reply: Reply) -> str | None:
    return None if reply is None else as_text(reply)
