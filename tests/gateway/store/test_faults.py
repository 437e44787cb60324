"""Lost replies, dead servers, cancelled callers: every commit is applied once, and nobody gets another's reply."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from gateway.errors import NotRecorded, StoreRefused, StoreUnreachable
from gateway.ports import Append, DocumentId, Hold, Wake, Write
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.faultproxy import Fate, FaultProxy, at_nth
from tests.support.stores import a_commit
from tests.support.valkey import Valkey, running_sentinel, running_valkey
from tests.support.waiting import until

RUN = DocumentId("run_07_one")


@pytest.fixture
async def proxy(valkey: Valkey) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(valkey.socket) as running:
        yield running


@pytest.fixture
async def store(proxy: FaultProxy, clock: ManualClock) -> AsyncIterator[RedisStore]:
    """Through the proxy."""
    opened = await open_store(proxy.url, clock=clock)
    yield opened
    await opened.close()


def is_following(replica: Valkey) -> bool:
    return replica.client.info("replication")["master_link_status"] == "up"


def session(n: int) -> DocumentId:
    return DocumentId(f"s_{n % 64:02d}_{n}")


class TestALostReply:
    @pytest.mark.parametrize("fate", [Fate.DROP, Fate.RESET])
    async def test_is_one_effect(self, store: RedisStore, proxy: FaultProxy, fate: Fate):
        commit = a_commit(appends=(Append(session(7), (b"once",)),))
        proxy.on_reply = at_nth(1, lambda: fate, only=b"ok")
        committed = await store.commit(commit)
        assert committed.replayed
        assert await store.transcript(session(7)) == [b"once"]

    async def test_so_is_a_lost_request(self, store: RedisStore, proxy: FaultProxy):
        proxy.on_request = at_nth(1, lambda: Fate.DROP, only=b"op:")
        committed = await store.commit(a_commit(appends=(Append(session(7), (b"once",)),)))
        assert not committed.replayed
        assert await store.transcript(session(7)) == [b"once"]

    async def test_hundreds_at_random(self, store: RedisStore, proxy: FaultProxy):
        """Whatever is lost, and whoever's reply travelled with it."""
        dice = random.Random(7)

        def sometimes(chunk: bytes) -> Fate:
            return Fate.DROP if dice.random() < 0.05 else Fate.PASS

        proxy.on_request = proxy.on_reply = sometimes

        async def write_ten(n: int) -> None:
            for step in range(10):
                entry = Append(session(n), (b"%d" % step,))
                await store.commit(a_commit(partition=n % 64, appends=(entry,), rows=(b"%d/%d" % (n, step),)))

        await asyncio.gather(*[write_ten(n) for n in range(40)])
        proxy.on_request = proxy.on_reply = lambda chunk: Fate.PASS
        for n in range(40):
            assert await store.transcript(session(n)) == [b"%d" % step for step in range(10)]
            assert [row.number for row in await store.rows(n, after=0, limit=99)] == list(range(1, 11))
        assert proxy.connections > 10, "nothing was ever lost"

    async def test_without_end_may_have_been_recorded(self, proxy: FaultProxy, clock: ManualClock):
        store = await open_store(proxy.url, clock=clock, insist_s=0.2)
        proxy.on_reply = lambda chunk: Fate.DROP if b"ok" in chunk or b"replayed" in chunk else Fate.PASS
        commit = a_commit()
        with pytest.raises(NotRecorded) as failure:
            await store.commit(commit)
        assert failure.value.unsure
        proxy.on_reply = lambda chunk: Fate.PASS
        assert (await store.commit(commit)).replayed
        await store.close()

    async def test_of_a_claim_is_not_made_up_for(
        self, store: RedisStore, proxy: FaultProxy, clock: ManualClock
    ):
        await store.commit(a_commit(work=(Wake("runs", RUN),)))
        proxy.on_reply = at_nth(1, lambda: Fate.DROP, only=RUN.encode())
        with pytest.raises(StoreUnreachable) as failure:
            await store.claim("runs", partition=7, limit=1, lease_ms=10_000, token="t")
        assert failure.value.unsure
        assert not (await store.claim("runs", partition=7, limit=1, lease_ms=10_000, token="u")).claims
        clock.move(ms=10_000)
        assert (await store.claim("runs", partition=7, limit=1, lease_ms=10_000, token="u")).claims


class TestAServerThatIsGone:
    async def test_and_comes_back_keeps_what_it_acknowledged(self, clock: ManualClock):
        """Killed as by kill -9 in the middle of traffic."""
        with running_valkey(appendfsync="always") as server:
            store = await open_store(server.url, clock=clock, insist_s=20)
            acknowledged: list[int] = []

            async def write(first: int) -> None:
                for n in range(first, first + 50):
                    await store.commit(a_commit(partition=n % 64, appends=(Append(session(n), (b"x",)),)))
                    acknowledged.append(n)
                    if len(acknowledged) in (100, 300):
                        server.kill()
                        server.start()

            await asyncio.gather(*[write(first) for first in range(0, 500, 50)])
            lengths = [await store.transcript_length(session(n)) for n in range(500)]
            assert lengths == [1] * 500
            await store.close()

    async def test_and_comes_back_empty_is_refused(self, clock: ManualClock):
        with running_valkey(appendonly="no", save="3600 1") as server:
            store = await open_store(server.url, clock=clock)
            await store.commit(a_commit())
            server.kill()
            server.start()
            with pytest.raises(StoreRefused, match="came back empty"):
                await store.commit(a_commit())
            await store.close()

    async def test_for_good_is_not_recorded(self, clock: ManualClock):
        with running_valkey() as server:
            store = await open_store(server.url, clock=clock, insist_s=0.2)
            server.kill()
            with pytest.raises(StoreUnreachable):
                await store.load([RUN])
            with pytest.raises(NotRecorded) as failure:
                await store.commit(a_commit())
            assert not failure.value.unsure
            await store.close()

    async def test_from_the_start_is_unreachable(self, clock: ManualClock):
        with pytest.raises(StoreUnreachable):
            await open_store("unix:///nowhere/s", clock=clock, insist_s=0.05)

    async def test_or_only_forgot_its_scripts_is_told_them_again(self, store: RedisStore, valkey: Valkey):
        await store.commit(a_commit(work=(Wake("runs", RUN),)))
        valkey.client.script_flush()
        assert (await store.claim("runs", partition=7, limit=1, lease_ms=1_000, token="t")).claims
        valkey.client.script_flush()
        await store.commit(a_commit())


async def test_a_stalled_server_counts_as_gone(valkey: Valkey, clock: ManualClock):
    async with FaultProxy(valkey.socket) as proxy:
        store = await open_store(proxy.url, clock=clock, patience_s=0.1)
        proxy.on_reply = at_nth(1, lambda: Fate.STALL, only=b"ok")
        assert (await store.commit(a_commit())).replayed
        await store.close()


async def test_a_replica_is_left_for_the_primary(clock: ManualClock):
    with running_valkey(tcp=True) as first, running_valkey(tcp=True) as second:
        async with FaultProxy(first.port, tcp=True) as proxy:
            store = await open_store(proxy.url, clock=clock)
            second.client.replicaof("127.0.0.1", first.port)
            await until(lambda: is_following(second), what="the replica follows")
            await store.commit(a_commit(writes=(Write(RUN, 0, b"one"),)))
            assert first.client.wait(1, 5_000) == 1
            second.client.replicaof("NO", "ONE")
            first.client.replicaof("127.0.0.1", second.port)
            proxy.upstream = second.port
            await store.commit(a_commit(writes=(Write(RUN, 1, b"two"),)))
            assert second.client.hget("signoff:{07}:doc:run_07_one", "d") == b"two"
            await store.close()


async def test_sentinels_lead_to_the_new_primary(clock: ManualClock):
    with running_valkey(tcp=True) as first, running_valkey(tcp=True) as second:
        second.client.replicaof("127.0.0.1", first.port)
        with running_sentinel(first, service="main") as sentinel:
            port = sentinel.connection_pool.connection_kwargs["port"]
            store = await open_store(f"redis+sentinel://127.0.0.1:{port}/main/0", clock=clock, insist_s=20)
            await store.commit(a_commit(writes=(Write(RUN, 0, b"one"),)))
            await until(
                lambda: sentinel.execute_command("SENTINEL", "REPLICAS", "main"), what="the replica is seen"
            )
            await until(
                lambda: second.client.exists("signoff:{07}:doc:run_07_one"), what="the replica has it"
            )
            first.kill()
            await store.commit(a_commit(writes=(Write(RUN, 1, b"two"),)))
            assert second.client.hget("signoff:{07}:doc:run_07_one", "d") == b"two"
            await store.close()


async def test_a_closed_store_says_so(valkey: Valkey, clock: ManualClock):
    store = await open_store(valkey.url, clock=clock)
    await store.close()
    with pytest.raises(StoreUnreachable, match="closed"):
        await store.commit(a_commit())


class TestConfirming:
    async def test_says_whether_the_replicas_have_it(self, clock: ManualClock):
        with running_valkey(tcp=True) as first, running_valkey(tcp=True) as second:
            store = await open_store(first.url, clock=clock, replicas=1, confirm_timeout_ms=50)
            assert not (await store.commit(a_commit(confirm=True))).confirmed
            second.client.replicaof("127.0.0.1", first.port)
            await until(lambda: is_following(second), what="the replica follows")
            while not (await store.commit(a_commit(confirm=True))).confirmed:
                pass
            assert (await store.commit(a_commit())).confirmed
            await store.close()

    async def test_a_repetition_confirms_only_what_the_replica_has(self, clock: ManualClock):
        """WAIT looks at what its own connection wrote, and a repetition comes on another one."""
        with running_valkey(tcp=True) as first, running_valkey(tcp=True) as second:
            second.client.replicaof("127.0.0.1", first.port)
            await until(lambda: is_following(second), what="the replica follows")
            before = await open_store(first.url, clock=clock)
            second.pause()
            commit = a_commit(confirm=True)
            await before.commit(commit)
            after = await open_store(first.url, clock=clock, replicas=1, confirm_timeout_ms=50)
            again = await after.commit(commit)
            assert again.replayed
            assert not again.confirmed
            second.go_on()
            await before.close()
            await after.close()


class TestCancelling:
    async def test_ten_thousand_callers_crosses_no_replies(self, valkey: Valkey, clock: ManualClock):
        store = await open_store(valkey.url, clock=clock)
        dice = random.Random(7)
        wrong: list[object] = []

        async def call(n: int) -> None:
            id = DocumentId(f"run_{n % 64:02d}_{n}")
            await store.commit(a_commit(partition=n % 64, writes=(Write(id, 0, b"%d" % n),)))
            (stored,) = await store.load([id])
            if stored is None or stored.body != b"%d" % n:
                wrong.append(stored)

        for batch in range(100):
            tasks = [asyncio.create_task(call(batch * 100 + n)) for n in range(100)]
            for _ in range(dice.randrange(6)):
                await asyncio.sleep(0)
            for task in tasks:
                if dice.random() < 0.9:
                    task.cancel()
            await asyncio.wait(tasks)
            assert not [task for task in tasks if not task.cancelled() and task.exception()]
        assert wrong == []
        assert await store.now_ms()
        await store.close()


class TestTheHeart:
    async def test_beats_in_a_thread_of_its_own(self, valkey: Valkey, clock: ManualClock):
        store = await open_store(valkey.url, clock=clock)
        await store.commit(a_commit(work=(Wake("runs", RUN),)))
        await store.claim("runs", partition=7, limit=1, lease_ms=10_000, token="t")
        heart = Heart(valkey.url, clock=clock)
        holds = [Hold("runs", RUN, "other"), Hold("runs", RUN, "t")]
        assert await asyncio.to_thread(heart.renew, holds, lease_ms=20_000) == (None, 1)
        valkey.client.script_flush()
        assert await asyncio.to_thread(heart.renew, holds, lease_ms=20_000) == (None, 1)
        clock.move(ms=15_000)
        assert not (await store.claim("runs", partition=7, limit=1, lease_ms=1, token="u")).claims
        heart.close()
        await store.close()

    def test_says_when_nobody_answers(self, clock: ManualClock):
        heart = Heart("unix:///nowhere/s", clock=clock)
        with pytest.raises(StoreUnreachable):
            heart.renew([Hold("runs", RUN, "t")], lease_ms=1)
        heart.close()
