"""How connections to the addressed servers come about. The one file that touches redis-py's connection classes.

Owns dialling, login, TLS and the question to the sentinels, all of it redis-py's. Knows nothing of what is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from redis.asyncio.cluster import RedisCluster
from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.store.address import Cluster, Login, Sentinels, Server
from gateway.store.command import Reply, pack
from gateway.store.wire import Link

Greeting: TypeAlias = Callable[[Link], Awaitable[None]]
"""What is said first on a new connection. Raises if the other end is not the store that we know."""

CONNECT_TIMEOUT_S = 2.0
_SENTINEL_TIMEOUT_S = 0.5
"""Short, because the next one knows the same."""


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Links:
    """Connections to one place, and what there is to close after the last of them."""

    new: Callable[[], Link]
    """Makes a connection that is not yet dialled."""
    close: Callable[[], Awaitable[None]] = _nothing


def links_to_server(server: Server) -> Links:
    pool = _untyped(ConnectionPool).from_url(server.url, **_options())
    return Links(pool.make_connection)


def links_to_primary(sentinels: Sentinels) -> Links:
    """Every dialling asks the sentinels anew."""
    manager = _untyped(Sentinel)(
        list(sentinels.hosts),
        sentinel_kwargs=_options()
        | {"socket_timeout": _SENTINEL_TIMEOUT_S, "socket_connect_timeout": _SENTINEL_TIMEOUT_S}
        | _login(sentinels.watch)
        | _tls_flag(sentinels.watch),
    )
    pool = _untyped(SentinelConnectionPool)(
        sentinels.service,
        manager,
        db=sentinels.database,
        **_options(),
        **_login(sentinels.login),
        **_tls_flag(sentinels.login),
    )
    # The bound method keeps the pool alive: its connections only hold a weak reference to it.
    return Links(pool.make_connection, manager.aclose)


def links_to_node(host: str, port: int, login: Login) -> Links:
    kind = _untyped(SSLConnection if login.tls else Connection)
    return Links(partial(kind, host=host, port=port, **_options(), **_login(login)))


class Topology:
    """Which node of a cluster serves a key, as far as the cluster told us."""

    def __init__(self, cluster: Cluster) -> None:
        self._login = cluster.login
        self._hosts = cluster.hosts
        self._client: Any = None

    async def refresh(self) -> None:
        """Asks the nodes that are known, one after the other, until one answers."""
        failure: Exception = RedisConnectionError("no host in the cluster's address")
        for host, port in self._known_hosts():
            client = self._new_client(host, port)
            try:
                await client.initialize()
                await self.close()
                self._client = client
                return
            except Exception as error:
                # redis-py raises its own, OSError and KeyError here, by where the node fails.
                failure = error
                await client.aclose()
        raise RedisConnectionError(f"no node of the cluster answers: {failure}") from failure

    def node_of(self, key: bytes) -> tuple[str, int]:
        node = self._client.get_node_from_key(key.decode())
        if node is None:
            raise RedisConnectionError("no node of the cluster serves a partition's slot")
        return node.host, node.port

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _known_hosts(self) -> list[tuple[str, int]]:
        """Those of the address first; they may all be gone after a while."""
        found: Any = self._client.get_nodes() if self._client is not None else ()
        return list(dict.fromkeys([*self._hosts, *[(node.host, node.port) for node in found]]))

    def _new_client(self, host: str, port: int) -> Any:
        timeout = {"socket_connect_timeout": CONNECT_TIMEOUT_S, "socket_timeout": CONNECT_TIMEOUT_S}
        return _untyped(RedisCluster)(
            host=host, port=port, protocol=2, **timeout, **_login(self._login), **_tls_flag(self._login)
        )


async def dial(links: Links, greeting: Greeting) -> Link:
    link = links.new()
    try:
        await link.connect()
        await greeting(link)
    except BaseException:
        await link.disconnect(nowait=True)
        raise
    return link


async def ask(link: Link, *parts: bytes) -> Reply:
    """One command on a connection that nobody else uses yet."""
    await link.send_packed_command(pack(*parts), check_health=False)
    return cast(Reply, await link.read_response(disable_decoding=True))


def _options() -> dict[str, Any]:
    return {
        # Plain lists for everything; and a server that pushes nothing in between.
        "protocol": 2,
        "client_name": "signoff",
        "socket_timeout": None,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "retry": Retry(NoBackoff(), 0),
    }


def _login(login: Login) -> dict[str, Any]:
    return {"username": login.username, "password": login.password}


def _tls_flag(login: Login) -> dict[str, Any]:
    return {"ssl": True} if login.tls else {}


def _untyped(thing: object) -> Any:
    """redis-py's constructors and pools are only partly typed; what is used of them is `Link`."""
    return thing
