"""Brings surfaces to what the store says: claim, render from stored state, post or update, store the reference.

Owns delivery: retries with back-off, the failed state that operators see, coalescing. It reconciles and never replays:
what is shown follows from the record as it is now, so a stale post is never made after closing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.ids import RunId
from gateway import journal
from gateway.ask import AskRecord, load_ask
from gateway.asking import KEPT_MS
from gateway.changes import DRIVER_KEPT_MS, Changes
from gateway.channel import Channel, DeliveryDelayed, DeliveryRefused
from gateway.consumer import Consumer
from gateway.errors import ClaimLost, Conflict
from gateway.heartbeat import Heartbeat
from gateway.notice import RunNotice, notice_of
from gateway.partitions import partition_of
from gateway.ports import (
    Claimed,
    Clock,
    DocumentId,
    Hold,
    IndexChange,
    IndexPut,
    IndexRemove,
    Release,
    Store,
    Stored,
    Write,
)
from gateway.queues import UNDELIVERED
from gateway.session import load_run
from gateway.surface import SurfaceRecord, SurfaceState, dump_surface, load_surface
from gateway.telemetry import logger
from gateway.view import AskView, Names, fingerprint, present

LEASE_MS = 30_000
CONCURRENCY = 32
FIRST_DELAY_MS = 1_000
LONGEST_DELAY_MS = 5 * 60 * 1_000
GIVE_UP_AFTER = 12
"""Tries in a row: about half an hour."""


@dataclass
class Publisher:
    """All surfaces that this process can reach, by the channels it has."""

    store: Store
    clock: Clock
    heartbeat: Heartbeat
    channels: Mapping[str, Channel]
    """By queue."""
    names: Names
    consumer: Consumer = field(init=False)

    def __post_init__(self) -> None:
        self.consumer = Consumer(
            store=self.store,
            clock=self.clock,
            heartbeat=self.heartbeat,
            queues=tuple(self.channels),
            handle=self._due,
            lease_ms=LEASE_MS,
            concurrency=CONCURRENCY,
        )

    async def _due(self, claim: Claimed, hold: Hold) -> None:
        stored = claim.documents.get(DocumentId(claim.member))
        if stored is None:
            await self._release(claim, hold, Changes(), again_at=None)
            return
        surface = load_surface(stored.body)
        view, run_id = await self._view(surface, claim.documents, self.channels[hold.queue])
        if view is None or run_id is None or _nothing_to_do(surface, view):
            await self._release(claim, hold, Changes(), again_at=None)
            return
        await self._deliver(_Delivery(claim, hold, stored, surface, run_id), view)

    async def _view(
        self, surface: SurfaceRecord, documents: Mapping[DocumentId, Stored], channel: Channel
    ) -> tuple[AskView | RunNotice | None, RunId | None]:
        """What the surface should show now; None when what it was about is gone."""
        about = documents.get(surface.about)
        if about is None:
            return None, None
        if surface.kind == "ask":
            record = load_ask(about.body)
            return present(record, self.names, channel.limits), record.run_id
        run = load_run(about.body)
        return notice_of(run, await self._asks(run.asked), self.names), run.state.run_id

    async def _asks(self, ids: tuple[DocumentId, ...]) -> list[AskRecord]:
        return [load_ask(s.body) for s in await self.store.load(ids) if s is not None]

    async def _deliver(self, delivery: _Delivery, view: AskView | RunNotice) -> None:
        surface = delivery.surface
        try:
            published = await self.channels[delivery.hold.queue].publish(surface, view)
        except DeliveryDelayed as error:
            await self._delayed(delivery, error)
        except DeliveryRefused as error:
            await self._keep(delivery, replace(surface, state=SurfaceState.FAILED, error=str(error)))
        else:
            shown = SurfaceState.SHOWN
            refs = dict(published.refs)
            await self._keep(
                delivery,
                replace(surface, state=shown, refs=refs, shown=fingerprint(view), tries=0, error=""),
            )

    async def _delayed(self, delivery: _Delivery, error: DeliveryDelayed) -> None:
        tries = delivery.surface.tries + 1
        delayed = replace(delivery.surface, tries=tries, error=str(error))
        if tries >= GIVE_UP_AFTER:
            await self._keep(delivery, replace(delayed, state=SurfaceState.FAILED))
            return
        wait = _delay_ms(tries) if error.retry_after is None else int(error.retry_after * 1000)
        await self._keep(delivery, delayed, again_at=self.clock.now_ms() + wait)

    async def _keep(
        self, delivery: _Delivery, surface: SurfaceRecord, *, again_at: int | None = None
    ) -> None:
        """Keep what is known of the delivery now. A failing one stands in an index until it succeeds."""
        stored = delivery.stored
        write = Write(
            stored.id, stored.version, dump_surface(surface), loads=(surface.about,), expires_ms=KEPT_MS
        )
        changes = Changes(writes=(write,), index=(self._visible(surface),), rows=_rows(delivery, surface))
        await self._release(delivery.claim, delivery.hold, changes, again_at=again_at)

    def _visible(self, surface: SurfaceRecord) -> IndexChange:
        if not surface.error:
            return IndexRemove(UNDELIVERED, surface.id)
        logger.warning("delivery", surface_id=surface.id, channel=surface.channel, reason=surface.error)
        return IndexPut(UNDELIVERED, surface.id, self.clock.now_ms())

    async def _release(self, claim: Claimed, hold: Hold, changes: Changes, *, again_at: int | None) -> None:
        release = Release(hold.queue, claim.member, claim.generation, at_ms=again_at, leave=again_at is None)
        commit = (changes + Changes(work=(release,))).commit(
            partition_of(claim.member),
            f"surface/{hold.token}/{claim.member}",
            keep_ms=DRIVER_KEPT_MS,
            hold=hold,
        )
        try:
            await self.store.commit(commit)
        except (ClaimLost, Conflict) as error:
            logger.warning("surface-lost", surface_id=claim.member, reason=str(error))


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A surface in our hands."""

    claim: Claimed
    hold: Hold
    stored: Stored
    surface: SurfaceRecord
    run_id: RunId


def _rows(delivery: _Delivery, surface: SurfaceRecord) -> tuple[bytes, ...]:
    """That it was delivered is a fact once; that it failed for good, each time."""
    if surface.state is SurfaceState.FAILED:
        return (journal.delivery_failed(surface, delivery.run_id),)
    if surface.state is SurfaceState.SHOWN and delivery.surface.state is not SurfaceState.SHOWN:
        return (journal.delivered(surface, delivery.run_id),)
    return ()


def _nothing_to_do(surface: SurfaceRecord, view: AskView | RunNotice) -> bool:
    """Shown as it is; or never shown, and closed before it could be."""
    if surface.shown == fingerprint(view):
        return True
    return not surface.refs and isinstance(view, AskView) and not view.open and surface.tries == 0


def _delay_ms(tries: int) -> int:
    return min(FIRST_DELAY_MS * 2 ** (tries - 1), LONGEST_DELAY_MS)
