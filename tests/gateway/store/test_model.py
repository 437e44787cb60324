"""Any sequence of commits and claims against a model of thirty lines: same answers, same documents, same work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from gateway.errors import ClaimLost, Conflict
from gateway.ports import Commit, DocumentId, Expect, Hold, Release, Take, Wake, WorkChange, Write
from gateway.store.opening import open_store
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.valkey import Valkey

QUEUE = "runs"
PARTITION = 7
LEASE_MS = 1_000_000
"""Long against the run time of an example, so that only moving the clock ends a lease."""
MEMBERS = [DocumentId(f"run_07_{n}") for n in range(3)]
TOKENS = ["one", "two"]


@dataclass
class Entry:
    """A member of the queue: due when, raised how often, held by whom until it is due."""

    due: int
    generation: int = 0
    token: str | None = None


@dataclass
class Model:
    """What the store should hold. Times are the clock's offset: everything else takes none."""

    versions: dict[DocumentId, int] = field(default_factory=dict[DocumentId, int])
    queue: dict[str, Entry] = field(default_factory=dict[str, Entry])
    rows: int = 0
    now: int = 0

    def live(self, member: str) -> bool:
        entry = self.queue.get(member)
        return bool(entry and entry.token and entry.due > self.now)

    def claim(self, token: str, limit: int) -> list[tuple[str, int]]:
        due = sorted((entry.due, member) for member, entry in self.queue.items() if entry.due <= self.now)
        for _, member in due[:limit]:
            self.queue[member].token, self.queue[member].due = token, self.now + LEASE_MS
        return [(member, self.queue[member].generation) for _, member in due[:limit]]

    def refusal(self, commit: Commit) -> type[Exception] | None:
        if commit.hold:
            entry = self.queue.get(commit.hold.member)
            if not entry or entry.token != commit.hold.token:
                return ClaimLost
        wanted = [(w.id, w.expected) for w in commit.writes] + [(e.id, e.version) for e in commit.expect]
        return Conflict if any(self.versions.get(id, 0) != version for id, version in wanted) else None

    def apply(self, commit: Commit) -> tuple[tuple[int, ...], bool]:
        for write in commit.writes:
            if write.body is None:
                self.versions.pop(write.id, None)
            else:
                self.versions[write.id] = write.expected + 1
        self.rows += len(commit.rows)
        generations = tuple(self._change(change) for change in commit.work)
        taken = commit.take is not None and not self.live(commit.take.member)
        if commit.take and taken:
            entry = self.queue[commit.take.member]
            entry.token, entry.due = commit.take.token, self.now + commit.take.lease_ms
        return generations, taken

    def _change(self, change: WorkChange) -> int:
        match change:
            case Wake():
                entry = self.queue.setdefault(change.member, Entry(due=2**60))
                entry.generation += 1
                if not self.live(change.member):
                    entry.due = min(entry.due, self.now if change.at_ms is None else change.at_ms)
                return entry.generation
            case Release():
                entry = self.queue[change.member]
                entry.token = None
                if entry.generation != change.seen:
                    entry.due = self.now
                elif change.leave:
                    del self.queue[change.member]
                    return 0
                else:
                    entry.due = self.now if change.at_ms is None else change.at_ms
                return entry.generation


class StoreMachine(RuleBasedStateMachine):
    valkey: Valkey

    @initialize()
    def start(self) -> None:
        self.valkey.client.flushall()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.store = self.loop.run_until_complete(open_store(self.valkey.url, clock=self.clock, lanes=1))
        self.model = Model()
        self.epoch = self.loop.run_until_complete(self.store.now_ms())
        self.past: list[tuple[Commit, tuple[int, ...]]] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.loop.run_until_complete(self.store.close())
            self.loop.close()

    @rule(hours=st.integers(1, 3))
    def time_passes(self, hours: int) -> None:
        self.clock.move(ms=hours * LEASE_MS // 2)
        self.model.now += hours * LEASE_MS // 2

    @rule(
        writes=st.dictionaries(st.sampled_from(MEMBERS), st.tuples(st.integers(0, 2), st.booleans())),
        expect=st.dictionaries(st.sampled_from(MEMBERS), st.integers(0, 2), max_size=1),
        wakes=st.lists(st.tuples(st.sampled_from(MEMBERS), st.sampled_from([None, 0, 1])), max_size=2),
        take=st.sampled_from([None, *TOKENS]),
        rows=st.integers(0, 2),
    )
    def commit(
        self,
        writes: dict[DocumentId, tuple[int, bool]],
        expect: dict[DocumentId, int],
        wakes: list[tuple[DocumentId, int | None]],
        take: str | None,
        rows: int,
    ) -> None:
        self._try(
            a_commit(
                writes=tuple(Write(id, v, b"body" if kept else None) for id, (v, kept) in writes.items()),
                expect=tuple(Expect(id, version) for id, version in expect.items()),
                work=tuple(Wake(QUEUE, member, self._at(later)) for member, later in wakes),
                rows=(b"row",) * rows,
                take=Take(QUEUE, wakes[0][0], take, LEASE_MS) if take and wakes else None,
            )
        )

    @rule(
        member=st.sampled_from(MEMBERS),
        token=st.sampled_from(TOKENS),
        behind=st.integers(0, 1),
        later=st.sampled_from([None, 1]),
        leave=st.booleans(),
        wake=st.booleans(),
    )
    def release(
        self, member: DocumentId, token: str, behind: int, later: int | None, leave: bool, wake: bool
    ) -> None:
        entry = self.model.queue.get(member)
        seen = (entry.generation if entry else 1) - behind
        changes = [Release(QUEUE, member, seen, self._at(later), leave)]
        self._try(
            a_commit(
                hold=Hold(QUEUE, member, token),
                work=(*[Wake(QUEUE, member)] * wake, *changes),
            )
        )

    @rule(token=st.sampled_from(TOKENS), limit=st.integers(1, 3))
    def claim(self, token: str, limit: int) -> None:
        batch = self.loop.run_until_complete(
            self.store.claim(QUEUE, partition=PARTITION, limit=limit, lease_ms=LEASE_MS, token=token)
        )
        expected = self.model.claim(token, limit)
        assert sorted((each.member, each.generation) for each in batch.claims) == sorted(expected)

    @rule(token=st.sampled_from(TOKENS))
    def renew(self, token: str) -> None:
        holds = [Hold(QUEUE, member, token) for member in MEMBERS]
        found = self.loop.run_until_complete(self.store.renew(holds, lease_ms=LEASE_MS))
        for member, generation in zip(MEMBERS, found, strict=True):
            entry = self.model.queue.get(member)
            if entry and entry.token == token:
                assert generation == entry.generation
                entry.due = self.model.now + LEASE_MS
            else:
                assert generation is None

    @rule(place=st.integers(0, 1_000))
    def repeat(self, place: int) -> None:
        """Any commit of the past, whatever happened since, does nothing and says the same."""
        if self.past:
            commit, generations = self.past[place % len(self.past)]
            again = self.loop.run_until_complete(self.store.commit(commit))
            assert again.replayed
            assert again.generations == generations

    @invariant()
    def the_store_holds_what_the_model_does(self) -> None:
        if not hasattr(self, "model"):
            return
        stored = self.loop.run_until_complete(self.store.load(MEMBERS))
        assert {each.id: each.version for each in stored if each} == self.model.versions
        rows = self.loop.run_until_complete(self.store.rows(PARTITION, after=0, limit=1_000))
        assert [row.number for row in rows] == list(range(1, self.model.rows + 1))
        client = self.valkey.client
        generations = client.hgetall("signoff:{07}:gen:" + QUEUE)
        tokens = client.hgetall("signoff:{07}:hold:" + QUEUE)
        assert {m.decode(): int(g) for m, g in generations.items()} == {
            member: entry.generation for member, entry in self.model.queue.items()
        }
        assert {m.decode(): t.decode() for m, t in tokens.items()} == {
            member: entry.token for member, entry in self.model.queue.items() if entry.token
        }
        self._compare_times(dict(client.zrange("signoff:{07}:work:" + QUEUE, 0, -1, withscores=True)))

    def _compare_times(self, scores: dict[bytes, float]) -> None:
        """To within what the example itself took."""
        assert {member.decode() for member in scores} == set(self.model.queue)
        for member, score in scores.items():
            off = score - self.epoch - self.model.queue[member.decode()].due
            assert 0 <= off < LEASE_MS / 10, f"{member.decode()} is due {off} ms off"

    def _at(self, later: int | None) -> int | None:
        """Now, half a lease from now, or whenever the commit arrives."""
        return None if later is None else self.epoch + self.model.now + later * LEASE_MS // 2

    def _try(self, commit: Commit) -> None:
        refusal = self.model.refusal(commit)
        if refusal:
            with pytest.raises(refusal):
                self.loop.run_until_complete(self.store.commit(commit))
            return
        committed = self.loop.run_until_complete(self.store.commit(commit))
        generations, taken = self.model.apply(self._in_model_time(commit))
        assert (committed.generations, committed.taken) == (generations, taken)
        self.past.append((commit, generations))

    def _in_model_time(self, commit: Commit) -> Commit:
        def moved(change: WorkChange) -> WorkChange:
            at = None if change.at_ms is None else change.at_ms - self.epoch
            if isinstance(change, Wake):
                return Wake(change.queue, change.member, at)
            return Release(change.queue, change.member, change.seen, at, change.leave)

        parts = {name: getattr(commit, name) for name in ("hold", "writes", "expect", "rows", "take")}
        return a_commit(**parts, work=tuple(moved(change) for change in commit.work))


@pytest.fixture
def machine(valkey_server: Valkey) -> type[StoreMachine]:
    return type("OnThisServer", (StoreMachine,), {"valkey": valkey_server})


def test_the_store_does_what_the_model_does(machine: type[StoreMachine]):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        ),
    )
