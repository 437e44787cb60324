"""Fixtures: a server for the whole test session, and an empty store on it for each test.

Import what you need into a `conftest.py`: `from tests.support.stores import clock, store, valkey`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from gateway.ports import Commit
from gateway.store.opening import open_store
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.valkey import Valkey, running_valkey

KEEP_MS = 60_000
_operations = count(1)


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Valkey]:
    with running_valkey() as server:
        yield server


@pytest.fixture
def valkey(valkey_server: Valkey) -> Valkey:
    """The session's server, emptied."""
    valkey_server.client.flushall()
    valkey_server.client.script_flush()
    return valkey_server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(valkey: Valkey, clock: ManualClock) -> AsyncIterator[RedisStore]:
    opened = await open_store(valkey.url, clock=clock)
    yield opened
    await opened.close()


def a_commit(**parts: object) -> Commit:
    """A commit in partition 7 under an operation id that nothing else has, unless it is told otherwise."""
    return Commit(**({"partition": 7, "operation": f"op-{next(_operations)}", "keep_ms": KEEP_MS} | parts))  # type: ignore[arg-type]
