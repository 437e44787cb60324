"""A store behind sentinels leaves no connection behind, neither to the primary nor to the sentinels."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.errors import StoreRefused, StoreUnreachable
from gateway.ports import Hold
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.valkey import Valkey, running_sentinel, running_valkey
from tests.support.waiting import until


@dataclass
class Guarded:
    """A primary and the sentinel that watches it; each of them knows who is connected."""

    primary: Valkey
    sentinel: Any

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.sentinel.connection_pool.connection_kwargs['port']}/main/0"

    def clients(self) -> int:
        """Connections by clients of ours; the sentinel's own to its primary bear its name."""
        return sum(_ours(server) for server in (self.primary.client, self.sentinel))


def _ours(server: Any) -> int:
    (own,) = [server.client_id()]
    others = [each for each in server.client_list() if int(each["id"]) != own]
    return len([each for each in others if not each["name"].startswith("sentinel-")])


def _hears(servers: Guarded) -> bool:
    return any(
        each["cmd"] == "subscribe" and each["name"] == "signoff"
        for each in servers.primary.client.client_list()
    )


@pytest.fixture(scope="module")
def servers() -> Iterator[Guarded]:
    with running_valkey(tcp=True) as primary, running_sentinel(primary, service="main") as sentinel:
        yield Guarded(primary, sentinel)


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Whatever is forgotten instead of closed says so when it is collected."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(warning.message) for warning in told] == []


async def test_a_store_closes_them_all(servers: Guarded, clock: ManualClock):
    store = await open_store(servers.url, clock=clock)
    await store.commit(a_commit())
    listening = asyncio.ensure_future(anext(store.listen()))
    await until(lambda: _hears(servers), what="the bell is heard")
    assert _ours(servers.sentinel) > 0
    await store.close()
    listening.cancel()
    await until(lambda: servers.clients() == 0, what="all of them closed")


async def test_a_store_that_is_listened_to_as_it_closes_opens_none(servers: Guarded, clock: ManualClock):
    store = await open_store(servers.url, clock=clock)
    listening = asyncio.ensure_future(anext(store.listen()))
    await store.close()
    with pytest.raises(StoreUnreachable, match="closed"):
        await listening
    await until(lambda: servers.clients() == 0, what="all of them closed")


async def test_a_store_that_is_refused_closes_them_all(servers: Guarded, clock: ManualClock):
    servers.primary.client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreRefused):
            await open_store(servers.url, clock=clock)
    finally:
        servers.primary.client.config_set("maxmemory-policy", "noeviction")
    await until(lambda: servers.clients() == 0, what="all of them closed")


async def test_a_heart_closes_them_all(servers: Guarded, clock: ManualClock):
    heart = Heart(servers.url, clock=clock)
    hold = Hold("runs:a", "run_07_1", "token")
    assert await asyncio.to_thread(heart.renew, [hold], lease_ms=1_000) == (None,)
    assert servers.clients() > 0
    heart.close()
    await until(lambda: servers.clients() == 0, what="all of them closed")
