"""One commit: all of it or nothing, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.errors import (
    ClaimLost,
    Conflict,
    InvalidCommit,
    NotRecorded,
    SignoffError,
    StoreDamaged,
    TooLate,
)
from gateway.ports import (
    Append,
    Commit,
    DocumentId,
    Expect,
    Hold,
    IndexPut,
    IndexRemove,
    Release,
    Take,
    Wake,
    Write,
)
from gateway.store.opening import open_store
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.valkey import Valkey, running_valkey

RUN = DocumentId("run_07_one")
ASK = DocumentId("a_07_one")
SESSION = DocumentId("s_07_one")
QUEUE = "runs:refunds"


def everything(**parts: object) -> Commit:
    """A commit that writes to every kind of key."""
    whole: dict[str, object] = {
        "writes": (Write(RUN, 0, b"run", loads=(ASK,)), Write(ASK, 0, b"ask", expires_ms=60_000)),
        "expect": (Expect(SESSION, 0),),
        "appends": (Append(SESSION, (b"one", b"two")),),
        "rows": (b"first", b"second"),
        "index": (IndexPut("open", ASK, 5),),
        "work": (Wake(QUEUE, RUN),),
    }
    return a_commit(**(whole | parts))


class TestWhatACommitWrites:
    async def test_documents_count_their_versions(self, store: RedisStore):
        await store.commit(a_commit(writes=(Write(RUN, 0, b"one"),)))
        await store.commit(a_commit(writes=(Write(RUN, 1, b"two"),)))
        (run,) = await store.load([RUN])
        assert run is not None
        assert (run.version, run.body) == (2, b"two")

    async def test_a_body_is_any_bytes(self, store: RedisStore):
        body = bytes(range(256)) * 40 + b"\r\n$3\r\n"
        await store.commit(a_commit(writes=(Write(RUN, 0, body), Write(ASK, 0, b""))))
        run, ask = await store.load([RUN, ASK])
        assert run is not None
        assert run.body == body
        assert ask is not None
        assert ask.body == b""

    async def test_a_document_can_be_deleted(self, store: RedisStore):
        await store.commit(a_commit(writes=(Write(RUN, 0, b"one"),)))
        await store.commit(a_commit(writes=(Write(RUN, 1, None),)))
        assert await store.load([RUN]) == (None,)

    async def test_a_document_expires_only_as_long_as_it_is_told_to(self, store: RedisStore, valkey: Valkey):
        key = f"signoff:{{07}}:doc:{RUN}"
        await store.commit(a_commit(writes=(Write(RUN, 0, b"one", expires_ms=60_000),)))
        assert 0 < valkey.client.pttl(key) <= 60_000
        await store.commit(a_commit(writes=(Write(RUN, 1, b"two"),)))
        assert valkey.client.pttl(key) == -1

    async def test_what_a_document_loads_changes_with_it(self, store: RedisStore):
        await store.commit(everything())
        await store.commit(a_commit(writes=(Write(RUN, 1, b"alone"),)))
        batch = await store.claim(QUEUE, partition=7, limit=1, lease_ms=1_000, token="t")
        assert list(batch.claims[0].documents) == [RUN]

    async def test_rows_are_numbered_without_gaps(self, store: RedisStore):
        first = await store.commit(a_commit(rows=(b"a", b"b")))
        none = await store.commit(a_commit(writes=(Write(RUN, 0, b""),)))
        second = await store.commit(a_commit(rows=(b"c",)))
        assert (first.first_row, none.first_row, second.first_row) == (1, 0, 3)
        rows = await store.rows(7, after=0, limit=10)
        assert [(row.number, row.body) for row in rows] == [(1, b"a"), (2, b"b"), (3, b"c")]
        assert [row.at_ms for row in rows] == [first.at_ms, first.at_ms, second.at_ms]
        assert [row.number for row in await store.rows(7, after=1, limit=1)] == [2]

    async def test_a_transcript_only_grows(self, store: RedisStore):
        await store.commit(a_commit(appends=(Append(SESSION, (b"one", b"two")),)))
        await store.commit(a_commit(appends=(Append(SESSION, (b"three",)),)))
        assert await store.transcript(SESSION) == [b"one", b"two", b"three"]
        assert await store.transcript(SESSION, start=2) == [b"three"]
        assert await store.transcript_length(SESSION) == 3

    async def test_an_index_is_one_over_all_partitions(self, store: RedisStore):
        for partition in (1, 30, 63):
            ask = f"a_{partition:02d}_x"
            await store.commit(a_commit(partition=partition, index=(IndexPut("open", ask, 100 - partition),)))
        found = await store.members("open", low=None, high=None, limit=2)
        assert [(member.member, member.score) for member in found] == [("a_63_x", 37), ("a_30_x", 70)]
        assert [each.member for each in await store.members("open", low=38, high=70, limit=9)] == ["a_30_x"]
        assert await store.members("open", low=0, high=0, limit=9) == []
        await store.commit(a_commit(partition=30, index=(IndexRemove("open", "a_30_x"),)))
        assert len(await store.members("open", low=None, high=None, limit=9)) == 2

    async def test_time_is_the_servers_plus_the_clocks_offset(self, store: RedisStore, clock: ManualClock):
        before = (await store.commit(a_commit())).at_ms
        clock.move(ms=3_600_000)
        assert 3_600_000 <= (await store.commit(a_commit())).at_ms - before < 3_660_000
        assert 3_600_000 <= await store.now_ms() - before < 3_660_000


class TestRepeating:
    async def test_a_commit_repeated_gives_the_same_result_and_writes_nothing(
        self, store: RedisStore, valkey: Valkey
    ):
        commit = everything()
        first = await store.commit(commit)
        after = valkey.dump()
        second = await store.commit(commit)
        assert second.replayed
        assert not first.replayed
        assert (second.at_ms, second.first_row, second.generations) == (first.at_ms, 1, (1,))
        assert valkey.dump() == after

    async def test_it_is_recognized_although_everything_moved_on(self, store: RedisStore, clock: ManualClock):
        now = await store.now_ms()
        commit = everything(not_after_ms=now + 1_000)
        await store.commit(commit)
        await store.commit(a_commit(writes=(Write(RUN, 1, b"later"),)))
        clock.move(ms=5_000)
        assert (await store.commit(commit)).replayed

    async def test_a_claim_that_was_taken_comes_again(self, store: RedisStore):
        commit = everything(take=Take(QUEUE, RUN, "mine", 10_000))
        first = await store.commit(commit)
        second = await store.commit(commit)
        assert first.claim is not None
        assert second.claim == first.claim

    async def test_but_not_once_it_ran_out_or_went_to_somebody_else(
        self, store: RedisStore, clock: ManualClock
    ):
        commit = everything(take=Take(QUEUE, RUN, "mine", 10_000))
        await store.commit(commit)
        clock.move(ms=10_001)
        assert not (await store.commit(commit)).taken
        await store.claim(QUEUE, partition=7, limit=1, lease_ms=10_000, token="theirs")
        assert not (await store.commit(commit)).taken

    async def test_a_refused_commit_is_not_remembered(self, store: RedisStore):
        commit = a_commit(writes=(Write(RUN, 1, b"two"),))
        with pytest.raises(Conflict):
            await store.commit(commit)
        await store.commit(a_commit(writes=(Write(RUN, 0, b"one"),)))
        assert not (await store.commit(commit)).replayed


REFUSALS: dict[str, tuple[type[SignoffError], dict[str, object]]] = {
    "a document exists already": (Conflict, {"writes": (Write(ASK, 0, b"new"), Write(RUN, 0, b"x"))}),
    "a document is older": (Conflict, {"writes": (Write(ASK, 0, b"new"), Write(RUN, 2, b"x"))}),
    "a document to delete is older": (Conflict, {"writes": (Write(RUN, 2, None),)}),
    "a document is not there": (Conflict, {"writes": (Write(ASK, 1, b"x"),)}),
    "an expectation fails": (Conflict, {"writes": (Write(ASK, 0, b"new"),), "expect": (Expect(RUN, 7),)}),
    "absence is expected": (Conflict, {"writes": (Write(ASK, 0, b"new"),), "expect": (Expect(RUN, 0),)}),
    "it is too late": (TooLate, {"not_after_ms": 1}),
    "the claim has another token": (ClaimLost, {"hold": Hold(QUEUE, RUN, "other")}),
    "the claim is on nothing": (ClaimLost, {"hold": Hold(QUEUE, "run_07_none", "t")}),
    "the claim is in another queue": (ClaimLost, {"hold": Hold("runs:none", RUN, "t")}),
}


class TestRefusals:
    @pytest.mark.parametrize("reason", REFUSALS)
    async def test_leave_everything_untouched(self, store: RedisStore, valkey: Valkey, reason: str):
        await store.commit(a_commit(writes=(Write(RUN, 0, b"run"),), work=(Wake(QUEUE, RUN),), rows=(b"r",)))
        await store.claim(QUEUE, partition=7, limit=1, lease_ms=10_000, token="t")
        error, parts = REFUSALS[reason]
        before = valkey.dump()
        with pytest.raises(error):
            await store.commit(everything(**({"writes": (Write(ASK, 0, b"new"),), "expect": ()} | parts)))
        assert valkey.dump() == before

    async def test_a_conflict_says_which_document(self, store: RedisStore):
        await store.commit(a_commit(writes=(Write(RUN, 0, b"run"),)))
        with pytest.raises(Conflict) as conflict:
            await store.commit(a_commit(writes=(Write(ASK, 0, b""),), expect=(Expect(RUN, 3),)))
        assert (conflict.value.id, conflict.value.expected, conflict.value.found) == (RUN, 3, 1)

    async def test_the_deadline_itself_is_in_time(self, store: RedisStore, clock: ManualClock):
        now = await store.now_ms()
        await store.commit(a_commit(not_after_ms=now + 60_000))
        clock.move(ms=60_001)
        with pytest.raises(TooLate):
            await store.commit(a_commit(not_after_ms=now + 60_000))


KEYS: dict[str, str] = {
    "operation": "op:op-wrong",
    "counter": "rows",
    "journal": "journal",
    "document": f"doc:{RUN}",
    "transcript": f"said:{SESSION}",
    "index": "index:open",
    "work": f"work:{QUEUE}",
    "generations": f"gen:{QUEUE}",
    "tokens": f"hold:{QUEUE}",
}
WRONG: dict[str, Callable[[Any, str], object]] = {
    "a string": lambda client, key: client.set(key, "x"),
    "a set": lambda client, key: client.sadd(key, "x"),
    "a list": lambda client, key: client.rpush(key, "x"),
}


class TestDamage:
    @pytest.mark.parametrize("kind", WRONG)
    @pytest.mark.parametrize("name", KEYS)
    async def test_a_key_of_a_wrong_kind_stops_the_commit_whole(
        self, store: RedisStore, valkey: Valkey, name: str, kind: str
    ):
        if (name, kind) in {("operation", "a string"), ("transcript", "a list")}:
            pytest.skip("that is the right kind")
        WRONG[kind](valkey.client, "signoff:{07}:" + KEYS[name])
        before = valkey.dump()
        with pytest.raises(StoreDamaged):
            await store.commit(everything(operation="op-wrong"))
        assert valkey.dump() == before

    async def test_a_journal_behind_its_counter_takes_no_rows(self, store: RedisStore, valkey: Valkey):
        await store.commit(a_commit(rows=(b"one", b"two")))
        valkey.client.delete("signoff:{07}:journal")
        before = valkey.dump()
        with pytest.raises(StoreDamaged, match="counter says 2"):
            await store.commit(everything())
        assert valkey.dump() == before

    async def test_a_counter_behind_its_journal_takes_no_rows(self, store: RedisStore, valkey: Valkey):
        await store.commit(a_commit(rows=(b"one", b"two")))
        valkey.client.set("signoff:{07}:rows", "1")
        before = valkey.dump()
        with pytest.raises(StoreDamaged, match="last row is 2-0"):
            await store.commit(everything())
        assert valkey.dump() == before

    async def test_an_archived_journal_goes_on_where_it_was(self, store: RedisStore, valkey: Valkey):
        await store.commit(a_commit(rows=(b"one", b"two")))
        valkey.client.xtrim("signoff:{07}:journal", maxlen=0, approximate=False)
        assert (await store.commit(a_commit(rows=(b"three",)))).first_row == 3


class TestAServerThatIsFull:
    async def test_refuses_the_commit_whole_and_certainly(self, clock: ManualClock):
        with running_valkey(maxmemory_policy="noeviction") as server:
            store = await open_store(server.url, clock=clock)
            await store.commit(a_commit(rows=(b"row",)))
            server.client.config_set("maxmemory", "1")
            before = server.dump()
            with pytest.raises(NotRecorded) as refused:
                await store.commit(everything())
            assert not refused.value.unsure
            assert server.dump() == before
            server.client.config_set("maxmemory", "0")
            await store.commit(everything())
            await store.close()

    async def test_still_renews_claims(self, clock: ManualClock):
        with running_valkey(maxmemory_policy="noeviction") as server:
            store = await open_store(server.url, clock=clock)
            await store.commit(a_commit(work=(Wake(QUEUE, RUN),)))
            await store.claim(QUEUE, partition=7, limit=1, lease_ms=1_000, token="t")
            server.client.config_set("maxmemory", "1")
            assert await store.renew([Hold(QUEUE, RUN, "t")], lease_ms=1_000) == (1,)
            await store.close()


CONTRADICTIONS: dict[str, dict[str, object]] = {
    "a document of another partition": {"writes": (Write(DocumentId("run_08_x"), 0, b""),)},
    "an expectation of another partition": {"expect": (Expect(DocumentId("run_08_x"), 0),)},
    "a load of another partition": {"writes": (Write(RUN, 0, b"", loads=(DocumentId("a_08_x"),)),)},
    "a session of another partition": {"appends": (Append(DocumentId("s_08_x"), (b"",)),)},
    "a member of another partition": {"work": (Wake(QUEUE, "run_08_x"),)},
    "an id without a partition": {"writes": (Write(DocumentId("run"), 0, b""),)},
    "a document written twice": {"writes": (Write(RUN, 0, b""), Write(RUN, 0, b""))},
    "a release without a hold": {"work": (Release(QUEUE, RUN, 1),)},
    "a release of another hold": {"work": (Release(QUEUE, RUN, 1),), "hold": Hold(QUEUE, "run_07_two", "t")},
    "a take of what is not woken": {"take": Take(QUEUE, RUN, "t", 1_000)},
    "a lease of nothing": {"work": (Wake(QUEUE, RUN),), "take": Take(QUEUE, RUN, "t", 0)},
    "an operation kept for nothing": {"keep_ms": 0},
    "a document that expires at once": {"writes": (Write(RUN, 0, b"", expires_ms=0),)},
    "a document that expires in a million years": {"writes": (Write(RUN, 0, b"", expires_ms=10**17),)},
    "a score that loses digits": {"index": (IndexPut("open", "a_07_x", 2**60),)},
    "too many entries": {"rows": (b"",) * 4_001},
}


@pytest.mark.parametrize("reason", CONTRADICTIONS)
async def test_a_contradictory_commit_never_reaches_the_server(
    store: RedisStore, valkey: Valkey, reason: str
):
    before = valkey.dump()
    with pytest.raises(InvalidCommit):
        await store.commit(a_commit(**CONTRADICTIONS[reason]))
    assert valkey.dump() == before


async def test_a_large_commit_is_no_trouble(store: RedisStore):
    entries = tuple(b"%d" % n for n in range(3_990))
    await store.commit(a_commit(appends=(Append(SESSION, entries),)))
    assert await store.transcript(SESSION) == list(entries)
