"""Reading the journal over all partitions: in order of time, from where one stopped, and never a row twice."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.journal_row import JournalRow, Kind, dump_row
from gateway.journal_tail import Entry, Page, last, tail, tell
from gateway.partitions import PARTITIONS
from gateway.ports import Row
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.stores import a_commit


def body(note: str) -> bytes:
    return dump_row(JournalRow(kind=Kind.ASK, note=note))


async def add(store: RedisStore, partition: int, *notes: str) -> None:
    await store.commit(a_commit(partition=partition, rows=tuple(map(body, notes))))


def notes(page: Page) -> list[str]:
    return [entry.row.note for entry in page.entries]


class Rows:
    """Rows at times that a test chooses: what a store's servers say when their clocks differ."""

    def __init__(self, rows: dict[int, list[tuple[int, str]]]) -> None:
        self._rows = rows
        self.reads = 0

    async def rows(self, partition: int, *, after: int, limit: int) -> list[Row]:
        self.reads += 1
        of = self._rows.get(partition, [])
        numbered = [Row(partition, n, at, body(note)) for n, (at, note) in enumerate(of, 1)]
        return numbered[after : after + limit]


class TestTail:
    async def test_of_an_empty_journal_is_empty(self, store: RedisStore):
        assert await tail(store, {}) == Page((), {})

    async def test_is_in_order_of_time_over_partitions(self, store: RedisStore, clock: ManualClock):
        for place, note in enumerate("abcdef"):
            await add(store, (place * 31) % PARTITIONS, note)
            clock.move(ms=10)
        page = await tail(store, {})
        assert notes(page) == list("abcdef")
        assert [entry.at_ms for entry in page.entries] == sorted(entry.at_ms for entry in page.entries)

    async def test_goes_on_where_it_stopped(self, store: RedisStore):
        await add(store, 7, "a", "b")
        first = await tail(store, {})
        assert (notes(first), first.positions) == (["a", "b"], {7: 2})
        await add(store, 7, "c")
        await add(store, 8, "d")
        second = await tail(store, first.positions)
        assert set(notes(second)) == {"c", "d"}
        assert second.positions == {7: 3, 8: 1}
        assert (await tail(store, second.positions)).entries == ()

    async def test_in_small_pages_brings_every_row_once(self, store: RedisStore):
        for partition in (0, 7, 63):
            await add(store, partition, *(f"{partition}-{n}" for n in range(5)))
        found, positions = list[str](), dict[int, int]()
        while True:
            page = await tail(store, positions, limit=4)
            if not page.entries:
                break
            assert len(page.entries) <= 4
            found += notes(page)
            positions = dict(page.positions)
        assert sorted(found) == sorted(f"{p}-{n}" for p in (0, 7, 63) for n in range(5))

    async def test_keeps_a_partitions_order_when_its_clock_was_set_back(self):
        store = Rows({1: [(100, "a"), (50, "b"), (120, "c")], 2: [(60, "x"), (110, "y")]})
        assert notes(await tail(store, {})) == ["x", "a", "b", "y", "c"]  # type: ignore[arg-type]

    @given(
        st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 9), max_size=6), max_size=4),
        st.integers(1, 5),
    )
    def test_brings_every_row_once_and_in_its_partitions_order(self, times: dict[int, list[int]], limit: int):
        rows = {p: [(at, f"{p}-{n}") for n, at in enumerate(of)] for p, of in times.items()}

        async def read_all() -> list[str]:
            found, positions = list[str](), dict[int, int]()
            while (page := await tail(Rows(rows), positions, limit=limit)).entries:  # type: ignore[arg-type]
                found += notes(page)
                positions = dict(page.positions)
            return found

        found = asyncio.run(read_all())
        for partition, of in rows.items():
            assert [note for note in found if note.startswith(f"{partition}-")] == [note for _, note in of]
        assert len(found) == sum(map(len, rows.values()))


class TestLast:
    @pytest.mark.parametrize("count", [0, 1, 3, 100])
    async def test_brings_the_newest_and_the_ends(self, store: RedisStore, clock: ManualClock, count: int):
        for place in range(9):
            await add(store, (7, 8, 40)[place % 3], f"{place}")
            clock.move(ms=10)
        page = await last(store, count)
        assert notes(page) == [str(n) for n in range(9)][-count:] if count else notes(page) == []
        assert {p: n for p, n in page.positions.items() if n} == {7: 3, 8: 3, 40: 3}
        assert (await tail(store, page.positions)).entries == ()

    @given(st.integers(0, 200))
    def test_finds_the_end_of_a_partition_in_a_few_reads(self, length: int):
        store = Rows({3: [(n, str(n)) for n in range(length)]})
        page = asyncio.run(last(store, 1))  # type: ignore[arg-type]
        assert page.positions[3] == length
        assert store.reads <= 2 * PARTITIONS + 20


class TestListeners:
    rows = (Row(7, 1, 5, body("a")), Row(7, 2, 6, body("b")))

    def test_each_get_each_row(self):
        heard: list[Entry] = []
        also: list[Entry] = []
        tell([heard.append, also.append], iter(self.rows))
        assert [entry.row.note for entry in heard] == ["a", "b"]
        assert also == heard

    def test_get_a_copy_of_their_own(self):
        """A listener that forces a change into what it got changes nobody else's."""
        heard: list[Entry] = []
        tell([lambda entry: object.__setattr__(entry.row, "note", "forged"), heard.append], self.rows)
        assert [entry.row.note for entry in heard] == ["a", "b"]
