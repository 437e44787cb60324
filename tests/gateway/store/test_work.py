"""Claims: one holder at a time, nothing forgotten, nothing handed out twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from gateway.errors import ClaimLost, StoreDamaged
from gateway.ports import ClaimBatch, DocumentId, Hold, Release, Ring, Take, Wake, Write
from gateway.store.opening import open_store
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.valkey import Valkey
from tests.support.waiting import until

QUEUE = "runs:refunds"
RUN = DocumentId("run_07_one")
ASK = DocumentId("a_07_one")
LEASE_MS = 10_000
TOKEN = "t"


async def claim(store: RedisStore, token: str = TOKEN, limit: int = 10) -> ClaimBatch:
    return await store.claim(QUEUE, partition=7, limit=limit, lease_ms=LEASE_MS, token=token)


async def wake(store: RedisStore, at_ms: int | None = None, member: str = RUN) -> None:
    await store.commit(a_commit(work=(Wake(QUEUE, member, at_ms),)))


async def release(
    store: RedisStore, *, seen: int, at_ms: int | None = None, leave: bool = False
) -> tuple[int, ...]:
    commit = a_commit(hold=Hold(QUEUE, RUN, "t"), work=(Release(QUEUE, RUN, seen, at_ms, leave),))
    return (await store.commit(commit)).generations


def members(batch: ClaimBatch) -> list[str]:
    return [each.member for each in batch.claims]


class TestClaiming:
    async def test_an_empty_queue_has_nothing_to_wait_for(self, store: RedisStore):
        batch = await claim(store)
        assert (batch.claims, batch.next_due_ms) == ((), None)

    async def test_what_is_due_comes_oldest_first_up_to_the_limit(self, store: RedisStore):
        now = await store.now_ms()
        for age in (1, 3, 2):
            await wake(store, now - age * 1_000, f"run_07_{age}")
        batch = await claim(store, limit=2)
        assert members(batch) == ["run_07_3", "run_07_2"]
        assert batch.next_due_ms == now - 1_000

    async def test_with_its_document_and_what_that_loads(self, store: RedisStore):
        writes = (
            Write(RUN, 0, b"run", loads=(ASK, DocumentId("a_07_gone"))),
            Write(ASK, 0, b"ask"),
        )
        await store.commit(a_commit(writes=writes, work=(Wake(QUEUE, RUN),)))
        (only,) = (await claim(store)).claims
        assert {id: stored.body for id, stored in only.documents.items()} == {RUN: b"run", ASK: b"ask"}
        assert only.generation == 1

    async def test_without_any_document(self, store: RedisStore):
        await wake(store, member="a_07_one#remind")
        (only,) = (await claim(store)).claims
        assert only.documents == {}

    async def test_what_is_claimed_is_nobody_elses(self, store: RedisStore):
        await wake(store)
        mine, theirs = await claim(store, "mine"), await claim(store, "theirs")
        assert members(mine) == [RUN]
        assert members(theirs) == []
        assert theirs.next_due_ms == mine.claims[0].until_ms == mine.at_ms + LEASE_MS

    async def test_until_the_lease_ends(self, store: RedisStore, clock: ManualClock):
        await wake(store)
        await claim(store, "mine")
        clock.move(ms=LEASE_MS)
        assert members(await claim(store, "theirs")) == [RUN]
        with pytest.raises(ClaimLost):
            await store.commit(a_commit(hold=Hold(QUEUE, RUN, "mine")))
        await store.commit(a_commit(hold=Hold(QUEUE, RUN, "theirs")))

    async def test_a_later_wake_is_claimed_later(self, store: RedisStore, clock: ManualClock):
        at = await store.now_ms() + 60_000
        await wake(store, at)
        early = await claim(store)
        assert (members(early), early.next_due_ms) == ([], at)
        clock.move(ms=60_001)
        assert members(await claim(store)) == [RUN]

    async def test_the_earlier_of_two_wakes_counts(self, store: RedisStore):
        now = await store.now_ms()
        for at in (now + 60_000, now + 30_000, now + 90_000):
            await wake(store, at)
        assert (await claim(store)).next_due_ms == now + 30_000

    async def test_a_damaged_document_claims_nothing(self, store: RedisStore, valkey: Valkey):
        await wake(store)
        await wake(store, member="run_07_two")
        valkey.client.set("signoff:{07}:doc:run_07_two", "x")
        before = valkey.dump()
        with pytest.raises(StoreDamaged):
            await claim(store)
        assert valkey.dump() == before

    async def test_a_hundred_at_once_get_each_member_once(self, store: RedisStore):
        for n in range(40):
            await wake(store, member=f"run_07_{n}")
        batches = await asyncio.gather(*[claim(store, f"t{n}", limit=1) for n in range(100)])
        claimed = [member for batch in batches for member in members(batch)]
        assert sorted(claimed) == sorted(f"run_07_{n}" for n in range(40))


class TestWakingWhatIsClaimed:
    async def test_keeps_its_time_and_raises_its_generation(self, store: RedisStore):
        await wake(store)
        (mine,) = (await claim(store)).claims
        await wake(store)
        assert members(await claim(store, "theirs")) == []
        assert await store.renew([Hold(QUEUE, RUN, "t")], lease_ms=LEASE_MS) == (mine.generation + 1,)

    async def test_makes_it_due_at_once_after_the_release(self, store: RedisStore):
        await wake(store)
        await claim(store)
        await wake(store)
        assert await release(store, seen=1, leave=True) == (2,)
        (again,) = (await claim(store, "theirs")).claims
        assert again.generation == 2

    async def test_whatever_the_release_asked_for(self, store: RedisStore):
        await wake(store)
        await claim(store)
        await wake(store, await store.now_ms() + 60_000)
        await release(store, seen=1, at_ms=await store.now_ms() + 90_000)
        assert members(await claim(store, "theirs")) == [RUN]


class TestReleasing:
    async def test_leaving_takes_everything_along(self, store: RedisStore, valkey: Valkey):
        await wake(store)
        await claim(store)
        assert await release(store, seen=1, leave=True) == (0,)
        assert not [key for key in valkey.dump() if QUEUE.encode() in key]

    async def test_for_later_is_back_off(self, store: RedisStore, clock: ManualClock):
        await wake(store)
        await claim(store)
        await release(store, seen=1, at_ms=await store.now_ms() + 60_000)
        assert members(await claim(store)) == []
        clock.move(ms=60_001)
        assert members(await claim(store)) == [RUN]

    async def test_a_wake_ends_the_back_off(self, store: RedisStore):
        await wake(store)
        await claim(store)
        await release(store, seen=1, at_ms=await store.now_ms() + 60_000)
        await wake(store)
        assert members(await claim(store)) == [RUN]

    async def test_twice_is_lost(self, store: RedisStore):
        await wake(store)
        await claim(store)
        await release(store, seen=1)
        with pytest.raises(ClaimLost):
            await release(store, seen=1)

    async def test_an_overdue_claim_that_nobody_took_still_counts(
        self, store: RedisStore, clock: ManualClock
    ):
        await wake(store)
        await claim(store)
        clock.move(ms=2 * LEASE_MS)
        assert await release(store, seen=1, leave=True) == (0,)


class TestRenewing:
    async def test_starts_the_lease_anew(self, store: RedisStore, clock: ManualClock):
        await wake(store)
        await claim(store)
        clock.move(ms=LEASE_MS - 1_000)
        assert await store.renew([Hold(QUEUE, RUN, "t")], lease_ms=LEASE_MS) == (1,)
        clock.move(ms=LEASE_MS - 1_000)
        assert members(await claim(store, "theirs")) == []

    async def test_says_which_are_lost_in_the_order_given(self, store: RedisStore):
        for member in ("run_07_a", "run_07_b"):
            await wake(store, member=member)
        await store.commit(a_commit(partition=9, work=(Wake(QUEUE, "run_09_c"),)))
        await claim(store)
        await store.claim(QUEUE, partition=9, limit=1, lease_ms=LEASE_MS, token="t")
        holds = [
            Hold(QUEUE, "run_07_b", "t"),
            Hold(QUEUE, "run_09_c", "other"),
            Hold(QUEUE, "run_07_a", "t"),
            Hold(QUEUE, "run_09_c", "t"),
            Hold("none", "run_07_a", "t"),
        ]
        assert await store.renew(holds, lease_ms=LEASE_MS) == (1, None, 1, 1, None)

    async def test_of_nothing_is_nothing(self, store: RedisStore):
        assert await store.renew([], lease_ms=LEASE_MS) == ()


class TestTaking:
    TAKE = Take(QUEUE, RUN, "mine", LEASE_MS)

    async def test_hands_over_the_documents_as_committed(self, store: RedisStore):
        await store.commit(a_commit(writes=(Write(RUN, 0, b"old", loads=(ASK,)),)))
        committed = await store.commit(
            a_commit(
                writes=(Write(RUN, 1, b"new", loads=(ASK,)), Write(ASK, 0, b"ask")),
                work=(Wake(QUEUE, RUN),),
                take=self.TAKE,
            )
        )
        assert committed.claim is not None
        assert {id: doc.body for id, doc in committed.claim.documents.items()} == {RUN: b"new", ASK: b"ask"}
        assert committed.claim.generation == 1
        assert committed.claim.until_ms == committed.at_ms + LEASE_MS
        assert members(await claim(store, "theirs")) == []

    async def test_leaves_a_live_claim_alone(self, store: RedisStore):
        await wake(store)
        await claim(store, "theirs")
        committed = await store.commit(a_commit(work=(Wake(QUEUE, RUN),), take=self.TAKE))
        assert not committed.taken
        assert committed.generations == (2,)
        await store.commit(a_commit(hold=Hold(QUEUE, RUN, "theirs")))

    async def test_leaves_even_its_own_earlier_claim_alone(self, store: RedisStore):
        for taken in (True, False):
            committed = await store.commit(a_commit(work=(Wake(QUEUE, RUN),), take=self.TAKE))
            assert committed.taken is taken

    async def test_takes_over_one_that_ran_out(self, store: RedisStore, clock: ManualClock):
        await wake(store)
        await claim(store, "theirs")
        clock.move(ms=LEASE_MS)
        assert (await store.commit(a_commit(work=(Wake(QUEUE, RUN),), take=self.TAKE))).taken
        with pytest.raises(ClaimLost):
            await store.commit(a_commit(hold=Hold(QUEUE, RUN, "theirs")))


class TestTheDoorbell:
    async def test_rings_in_this_process_at_once(self, store: RedisStore):
        async with contextlib.aclosing(cast("AsyncGenerator[Ring]", store.listen())) as rings:
            heard = asyncio.ensure_future(anext(rings))
            await asyncio.sleep(0)
            await wake(store)
            assert await heard == Ring(7, QUEUE)

    async def test_rings_in_other_processes(self, store: RedisStore, valkey: Valkey, clock: ManualClock):
        other = await open_store(valkey.url, clock=clock)
        async with contextlib.aclosing(cast("AsyncGenerator[Ring]", other.listen())) as rings:
            heard = asyncio.ensure_future(anext(rings))
            subscribed = valkey.client.pubsub_numsub
            await until(lambda: subscribed("signoff:bell")[0][1], what="the other process listens")
            await wake(store)
            assert await heard == Ring(7, QUEUE)
        await other.close()

    async def test_is_silent_for_what_the_commit_took_itself(self, store: RedisStore, valkey: Valkey):
        pubsub = valkey.client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe("signoff:bell")
        assert pubsub.get_message(timeout=1) is None
        await store.commit(a_commit(work=(Wake(QUEUE, RUN),), take=Take(QUEUE, RUN, "t", LEASE_MS)))
        await wake(store, member="run_07_two")
        assert pubsub.get_message(timeout=1)["data"] == f"07 {QUEUE}".encode()
        assert pubsub.get_message(timeout=0) is None
        pubsub.close()


async def test_depths_are_over_all_partitions(store: RedisStore):
    now = await store.now_ms()
    for partition, at in ((1, now - 5_000), (30, now - 9_000), (63, now + 60_000)):
        await store.commit(a_commit(partition=partition, work=(Wake(QUEUE, f"run_{partition:02d}_x", at),)))
    depth, empty = await store.queue_depths([QUEUE, "none"])
    assert (depth.waiting, depth.due, depth.oldest_due_ms) == (3, 2, now - 9_000)
    assert (empty.waiting, empty.due, empty.oldest_due_ms) == (0, 0, None)
