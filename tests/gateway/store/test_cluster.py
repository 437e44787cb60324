"""The same store on a cluster: every commit is one slot, and slots move."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from gateway.errors import Conflict
from gateway.ports import (
    Append,
    DocumentId,
    Expect,
    Hold,
    IndexPut,
    Release,
    Take,
    Wake,
    Write,
)
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.valkey import Valkey, running_cluster


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Valkey]]:
    with running_cluster(nodes=2) as servers:
        yield servers


@pytest.fixture
def url(nodes: list[Valkey]) -> str:
    for node in nodes:
        node.client.flushall()
    return f"redis+cluster://127.0.0.1:{nodes[0].port}"


def in_partition(kind: str, partition: int) -> DocumentId:
    return DocumentId(f"{kind}_{partition:02d}_x")


async def test_every_partition_does_everything(url: str, clock: ManualClock):
    store = await open_store(url, clock=clock)
    heart = Heart(url, clock=clock)
    for partition in range(64):
        run, ask, session = (in_partition(kind, partition) for kind in ("run", "a", "s"))
        committed = await store.commit(
            a_commit(
                partition=partition,
                writes=(Write(run, 0, b"run", loads=(ask,)), Write(ask, 0, b"ask", expires_ms=60_000)),
                expect=(Expect(session, 0),),
                appends=(Append(session, (b"hello",)),),
                rows=(b"row",),
                index=(IndexPut("open", ask, partition),),
                work=(Wake("runs", run), Wake("other", ask)),
                take=Take("runs", run, "t", 10_000),
            )
        )
        assert committed.claim is not None
        assert len(committed.claim.documents) == 2
        hold = Hold("runs", run, "t")
        assert await store.renew([hold], lease_ms=10_000) == (1,)
        assert heart.renew([hold], lease_ms=10_000) == (1,)
        assert (await store.claim("other", partition=partition, limit=1, lease_ms=9, token="t")).claims
        with pytest.raises(Conflict):
            await store.commit(a_commit(partition=partition, writes=(Write(run, 0, b""),)))
        await store.commit(
            a_commit(partition=partition, hold=hold, work=(Release("runs", run, 1, leave=True),))
        )
        assert await store.transcript(session) == [b"hello"]
    runs = await store.load([in_partition("run", partition) for partition in range(64)])
    assert all(run and run.body == b"run" for run in runs)
    assert len(await store.members("open", low=None, high=None, limit=100)) == 64
    (depth,) = await store.queue_depths(["other"])
    assert depth.waiting == 64
    heart.close()
    await store.close()


async def test_it_knows_itself_again(url: str, clock: ManualClock):
    for _ in range(2):
        store = await open_store(url, clock=clock)
        assert (await store.commit(a_commit(partition=3))).at_ms
        await store.close()


async def test_a_slot_that_moves_is_followed(nodes: list[Valkey], url: str, clock: ManualClock):
    """Reads in the middle of the move (ASK); commits as soon as it is over (TRYAGAIN until then, then MOVED)."""
    store = await open_store(url, clock=clock)
    run = in_partition("run", 5)
    await store.commit(a_commit(partition=5, writes=(Write(run, 0, b"one"),), rows=(b"row",)))
    slot = nodes[0].client.execute_command("CLUSTER", "KEYSLOT", "{05}")
    keys = {node.port: node.client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) for node in nodes}
    source, target = sorted(nodes, key=lambda node: -keys[node.port])
    ids = {node.port: node.client.execute_command("CLUSTER", "MYID") for node in nodes}
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
    source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
    moving = source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
    source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *moving)
    (stored,) = await store.load([run])
    assert stored
    assert stored.body == b"one"
    two = asyncio.create_task(
        store.commit(a_commit(partition=5, writes=(Write(run, 1, b"two"),), rows=(b"row",)))
    )
    await store.load([run])
    assert not two.done()
    for node in (target, source):
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
    assert (await two).first_row == 2
    committed = await store.commit(a_commit(partition=5, writes=(Write(run, 2, b"three"),), rows=(b"row",)))
    assert committed.first_row == 3
    await store.close()
