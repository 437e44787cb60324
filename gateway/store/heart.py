"""The heartbeat's own way to the store: renews claims from a thread, whatever the event loop is doing.

Owns one synchronous connection. Knows nothing of when to renew, or of what a lost claim means.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from redis import Redis, RedisCluster, Sentinel
from redis.backoff import ExponentialWithJitterBackoff
from redis.cluster import ClusterNode
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from gateway.errors import StoreUnreachable
from gateway.ports import Clock, Hold
from gateway.store.address import Address, Cluster, Login, Sentinels, Server, parse_address
from gateway.store.command import Reply
from gateway.store.scripts import WORK
from gateway.store.work import read_renewal, renewal_parts, renewals


class Heart:
    """For one thread. Connects with the first beat."""

    def __init__(self, url: str, *, clock: Clock, timeout_s: float = 2.0) -> None:
        self._address = parse_address(url)
        self._clock = clock
        self._timeout_s = timeout_s
        self._client: Any = None
        self._open = ExitStack()

    def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]:
        """As `Store.renew`. Raises StoreUnreachable: beating again is safe."""
        try:
            return self._renew(holds, lease_ms)
        except (RedisError, OSError) as error:
            raise StoreUnreachable(reason=str(error)) from error

    def close(self) -> None:
        self._open.close()

    def _renew(self, holds: Sequence[Hold], lease_ms: int) -> tuple[int | None, ...]:
        if self._client is None:
            self._client = _connect(self._address, self._timeout_s, self._open)
        generations: list[int | None] = [None] * len(holds)
        for renewal in renewals(holds):
            parts = renewal_parts(renewal, lease_ms=lease_ms, offset_ms=self._clock.offset_ms)
            for place, generation in zip(renewal.places, read_renewal(self._run(parts)), strict=True):
                generations[place] = generation
        return tuple(generations)

    def _run(self, parts: list[bytes]) -> Reply:
        name, digest, *rest = parts
        try:
            return self._client.execute_command(name.decode(), digest, *rest)
        except NoScriptError:
            return self._client.execute_command("EVAL", WORK.text, *rest)


def _connect(address: Address, timeout_s: float, opened: ExitStack) -> Any:
    """Whatever is opened on the way is closed by `opened`."""
    options = _options(timeout_s)
    match address:
        case Server():
            client = _untyped(Redis).from_url(address.url, **options)
        case Sentinels():
            manager = _untyped(Sentinel)(list(address.hosts), sentinel_kwargs=options | _login(address.watch))
            for each in manager.sentinels:
                opened.callback(each.close)
            client = manager.master_for(
                address.service, db=address.database, **options, **_login(address.login)
            )
        case Cluster():
            nodes = [ClusterNode(host, port) for host, port in address.hosts]
            client = RedisCluster(startup_nodes=nodes, **options, **_login(address.login))
    opened.callback(client.close)
    return client


def _options(timeout_s: float) -> dict[str, Any]:
    return {
        "protocol": 2,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.02, cap=timeout_s / 4), 2),
    }


def _login(login: Login) -> dict[str, Any]:
    plain: dict[str, Any] = {"username": login.username, "password": login.password}
    return plain | {"ssl": True} if login.tls else plain


def _untyped(thing: object) -> Any:
    """As in links.py: redis-py's constructors are only partly typed."""
    return thing
