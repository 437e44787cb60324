"""The ask half of every commit: what opening, changing and closing an ask writes.

Owns the pieces. Pure: records in, `Changes` out. The desk and the worker put them into commits; nothing else writes
asks.
"""

from __future__ import annotations

from gateway.ask import AskRecord, dump_ask
from gateway.changes import Changes
from gateway.ids import SurfaceId, surface_id
from gateway.ports import IndexPut, IndexRemove, Wake, Write
from gateway.queues import OPEN_ASKS, TIMERS, asks_for, surfaces_of
from gateway.surface import SurfaceRecord, dump_surface

DAY_MS = 24 * 60 * 60 * 1000
KEPT_MS = 90 * DAY_MS
"""How long a closed ask and its surfaces are kept."""


def opened(record: AskRecord) -> Changes:
    """A new ask, its surfaces, its deadline."""
    surfaces = tuple(_surface(record, channel, target) for channel, target in record.surfaces)
    changes = Changes(
        writes=(Write(record.id, 0, dump_ask(record)),),
        index=tuple(IndexPut(name, record.id, record.opened_at_ms) for name in _indexes(record)),
        work=(Wake(TIMERS, record.id, record.deadline_ms),) if record.deadline_ms is not None else (),
    )
    return sum(map(surface_wanted, surfaces), changes)


def surface_wanted(surface: SurfaceRecord) -> Changes:
    """A new surface, due now."""
    return Changes(
        writes=(Write(surface.id, 0, dump_surface(surface), loads=(surface.about,), expires_ms=KEPT_MS),),
        work=(Wake(surfaces_of(surface.channel, surface.target), surface.id),),
    )


def changed(record: AskRecord, version: int) -> Changes:
    """An ask after a move: stored, its surfaces due, its indexes left once it is closed."""
    closed = not record.open
    return Changes(
        writes=(Write(record.id, version, dump_ask(record), expires_ms=KEPT_MS if closed else None),),
        index=tuple(IndexRemove(name, record.id) for name in _indexes(record)) if closed else (),
        work=tuple(Wake(queue, surface) for queue, surface in surface_queues(record)),
    )


def surface_queues(record: AskRecord) -> tuple[tuple[str, SurfaceId], ...]:
    """Where each of the ask's surfaces is due when the ask changed."""
    return tuple(
        (surfaces_of(channel, target), surface_id(record.id, channel, target))
        for channel, target in record.surfaces
    )


def _surface(record: AskRecord, channel: str, target: str) -> SurfaceRecord:
    return SurfaceRecord(
        id=surface_id(record.id, channel, target), of=record.id, kind="ask", channel=channel, target=target
    )


def _indexes(record: AskRecord) -> tuple[str, ...]:
    return (OPEN_ASKS, *(asks_for(reference) for reference in record.approvers))
