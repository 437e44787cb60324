"""Reading the journal: forward from where one stopped, or its last rows, over all partitions in order of time.

Owns the merging. Reads only; a listener gets a copy of its own, so that nothing it does to a row reaches the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gateway.journal_row import JournalRow, load_row
from gateway.partitions import PARTITIONS
from gateway.ports import Row, Store

Positions = Mapping[int, int]
"""The number of the last row that was read, by partition."""
Listener = Callable[["Entry"], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row, and where and when it was written."""

    partition: int
    number: int
    at_ms: int
    row: JournalRow


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order of time, and from where to read on."""

    entries: tuple[Entry, ...] = ()
    positions: Positions = field(default_factory=dict[int, int])


async def tail(store: Store, after: Positions, *, limit: int = 1_000) -> Page:
    """The next rows, oldest first. An empty page: there are none yet.

    Rows of one partition keep their order; between partitions, whose clocks may differ by a little, time decides.
    """
    rows = await _from_each(store, {p: after.get(p, 0) for p in range(PARTITIONS)}, limit)
    entries = _merged(rows)[:limit]
    return Page(entries, {**after, **{entry.partition: entry.number for entry in entries}})


async def last(store: Store, count: int) -> Page:
    """The newest rows, oldest first, with the positions at the end: what `tail -f` begins with."""
    ends = await asyncio.gather(*(_end(store, partition) for partition in range(PARTITIONS)))
    if count == 0:
        return Page((), dict(enumerate(ends)))
    rows = await _from_each(store, {p: max(0, end - count) for p, end in enumerate(ends)}, count)
    known = [row for row in rows if row.number <= ends[row.partition]]
    return Page(_merged(known)[-count:], dict(enumerate(ends)))


def tell(listeners: Iterable[Listener], rows: Iterable[Row]) -> None:
    """Each listener gets each row, read from its bytes for that listener alone."""
    kept = tuple(rows)
    for listener in listeners:
        for row in kept:
            listener(_entry(row))


async def _from_each(store: Store, after: Positions, limit: int) -> list[Row]:
    reads = (store.rows(partition, after=number, limit=limit) for partition, number in after.items())
    return [row for rows in await asyncio.gather(*reads) for row in rows]


async def _end(store: Store, partition: int) -> int:
    """The number of the partition's last row. Numbers have no gaps, so halving finds it in a few reads."""
    low, step = 0, 1
    while (reached := await _first_after(store, partition, low + step - 1)) is not None:
        low, step = reached, step * 2
    high = low + step - 1
    while low < high:
        middle = (low + high) // 2
        reached = await _first_after(store, partition, middle)
        low, high = (reached, high) if reached is not None else (low, middle)
    return low


async def _first_after(store: Store, partition: int, number: int) -> int | None:
    rows = await store.rows(partition, after=number, limit=1)
    return rows[0].number if rows else None


def _merged(rows: Iterable[Row]) -> tuple[Entry, ...]:
    return tuple(_entry(row) for _, row in sorted(_never_back(rows), key=lambda pair: pair[0]))


def _never_back(rows: Iterable[Row]) -> Iterable[tuple[tuple[int, int, int], Row]]:
    """Each row with what it is sorted by. Within a partition, a clock that was set back does not change the order."""
    latest: dict[int, int] = {}
    for row in rows:
        latest[row.partition] = max(row.at_ms, latest.get(row.partition, 0))
        yield (latest[row.partition], row.partition, row.number), row


def _entry(row: Row) -> Entry:
    return Entry(row.partition, row.number, row.at_ms, load_row(row.body))
