"""Surfaces are brought to what the store says: once, again when it changes, later if a channel cannot, never stale."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from agent.decision import Approved
from agent.run import FinishReason, Phase
from gateway import asking, consumer
from gateway.ask import AskRecord, AskState, load_ask
from gateway.changes import Changes
from gateway.channel import DeliveryDelayed, DeliveryRefused, Published
from gateway.ids import document, surface_id
from gateway.journal_row import JournalRow, Kind, load_row
from gateway.lifecycle import Lapsed, Move, Ruled, transition
from gateway.notice import RunNotice
from gateway.ports import Commit, Release, Store, Write
from gateway.publisher import GIVE_UP_AFTER, LEASE_MS, LONGEST_DELAY_MS, Publisher
from gateway.queues import UNDELIVERED
from gateway.session import dump_run
from gateway.store.redis import RedisStore
from gateway.surface import SurfaceRecord, SurfaceState, load_surface
from gateway.view import AskView, Limits
from tests.support.asks import ASK, RUN, ask_record, binding, run_record
from tests.support.clock import ManualClock
from tests.support.consuming import at_work, meddling, resting
from tests.support.office import PEOPLE
from tests.support.waiting import until

PARTITION = 7
QUEUE = "surfaces:chat"
KEEP_MS = 3_600_000
SURFACE = surface_id(ASK, "chat", "general")
_serial = count(1)
OPEN = ask_record(surfaces=(("chat", "general"),))


@pytest.fixture(autouse=True)
def quick_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "SWEEP_SECONDS", 0.02)


@dataclass
class Chat:
    """A channel: posts with an id, updates by that id, fails as the test says."""

    name: str = "chat"
    limits: Limits = field(default_factory=Limits)
    failures: list[Exception] = field(default_factory=list[Exception])
    """One for each try, from the first."""
    tries: int = 0
    posted: list[AskView | RunNotice] = field(default_factory=list["AskView | RunNotice"])
    updated: list[tuple[Mapping[str, str], AskView | RunNotice]] = field(
        default_factory=list["tuple[Mapping[str, str], AskView | RunNotice]"]
    )
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def publish(self, surface: SurfaceRecord, view: AskView | RunNotice) -> Published:
        assert (surface.channel, surface.target) == ("chat", "general")
        self.tries += 1
        self.arrived.set()
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        if surface.refs:
            self.updated.append((surface.refs, view))
            return Published(surface.refs)
        self.posted.append(view)
        return Published({"ts": str(len(self.posted))})


@dataclass
class Street:
    """A store with one ask on one surface, and a publisher at work."""

    store: RedisStore
    clock: ManualClock
    chat: Chat = field(default_factory=Chat)

    def publisher(self, *, store: Store | None = None, instance: str = "one") -> Publisher:
        heartbeat = resting(self.clock, instance)
        return Publisher(store or self.store, self.clock, heartbeat, {QUEUE: self.chat}, PEOPLE)

    async def ask(self, record: AskRecord = OPEN) -> None:
        await self._commit(asking.opened(record))

    async def move(self, *moves: Move) -> None:
        """Each a commit of its own."""
        for move in moves:
            (stored,) = await self.store.load([ASK])
            assert stored is not None
            await self._commit(asking.changed(transition(load_ask(stored.body), move), stored.version))

    async def surface(self) -> SurfaceRecord:
        (stored,) = await self.store.load([SURFACE])
        assert stored is not None
        return load_surface(stored.body)

    async def settled(self) -> SurfaceRecord:
        """The surface, once nothing is left to be done about it."""
        for _ in range(10_000):
            if await self.waiting() == 0:
                return await self.surface()
        raise AssertionError("the surface is still in the queue")

    async def waiting(self) -> int:
        (depth,) = await self.store.queue_depths([QUEUE])
        return depth.waiting

    async def undelivered(self) -> list[str]:
        members = await self.store.members(UNDELIVERED, low=None, high=None, limit=10)
        return [member.member for member in members]

    async def rows(self) -> list[JournalRow]:
        return [load_row(row.body) for row in await self.store.rows(PARTITION, after=0, limit=100)]

    async def kinds(self) -> list[object]:
        return [row.kind for row in await self.rows()]

    async def _commit(self, changes: Changes) -> None:
        await self.store.commit(changes.commit(PARTITION, f"test-{next(_serial)}", keep_ms=KEEP_MS))


@pytest.fixture
def street(store: RedisStore, clock: ManualClock) -> Street:
    return Street(store, clock)


def decision() -> Ruled:
    return Ruled(binding(Approved(by="ann"), OPEN))


class TestAnAsk:
    async def test_is_posted_once_and_its_place_is_kept(self, street: Street):
        await street.ask()
        async with at_work(street.publisher().consumer):
            surface = await street.settled()
        (view,) = street.chat.posted
        assert isinstance(view, AskView)
        assert (view.ask_id, view.open, view.deciders) == (ASK, True, ("Ann", "Bob"))
        assert (surface.state, surface.refs, surface.error) == (SurfaceState.SHOWN, {"ts": "1"}, "")
        (row,) = await street.rows()
        assert (row.kind, row.channel, row.target, row.run_id) == (Kind.DELIVERED, "chat", "general", RUN)
        assert await street.undelivered() == []

    async def test_is_posted_once_by_several_processes(self, street: Street):
        await street.ask()
        async with at_work(*(street.publisher(instance=f"i{n}").consumer for n in range(4))):
            await street.settled()
        assert len(street.chat.posted) == 1

    async def test_is_updated_where_it_is_when_it_changes_and_delivered_only_once(self, street: Street):
        await street.ask()
        async with at_work(street.publisher().consumer):
            await street.settled()
            await street.move(decision())
            await until(lambda: street.chat.updated, what="the update")
            await street.settled()
        ((refs, view),) = street.chat.updated
        assert isinstance(view, AskView)
        assert (refs, view.state) == ({"ts": "1"}, AskState.DECIDED)
        assert len(street.chat.posted) == 1
        assert await street.kinds() == [Kind.DELIVERED]

    async def test_is_not_touched_when_nothing_changed(self, street: Street):
        await street.ask()
        async with at_work(street.publisher().consumer):
            await street.settled()
            (stored,) = await street.store.load([ASK])
            assert stored is not None
            await street._commit(asking.changed(load_ask(stored.body), stored.version))
            await street.settled()
        assert street.chat.tries == 1

    async def test_that_changes_while_it_is_posted_is_updated_at_once_to_the_latest(self, street: Street):
        """Several changes in between are one update."""
        street.chat.gate.clear()
        await street.ask()
        async with at_work(street.publisher().consumer):
            await street.chat.arrived.wait()
            await street.move(decision())
            (stored,) = await street.store.load([ASK])
            assert stored is not None
            outcome = replace(load_ask(stored.body), spent_by="attempt")
            await street._commit(asking.changed(outcome, stored.version))
            street.chat.gate.set()
            await until(lambda: street.chat.updated, what="the update")
            await street.settled()
        assert (len(street.chat.posted), len(street.chat.updated)) == (1, 1)

    @pytest.mark.parametrize("move", [decision(), Lapsed(2_000)])
    async def test_that_was_closed_before_it_could_be_posted_is_never_posted(
        self, street: Street, move: Move
    ):
        await street.ask()
        await street.move(move)
        async with at_work(street.publisher().consumer):
            surface = await street.settled()
        assert street.chat.tries == 0
        assert surface.state is SurfaceState.WANTED
        assert await street.kinds() == []

    async def test_that_is_gone_is_left_alone(self, street: Street):
        await street.ask()
        await street.store.commit(
            Changes(writes=(Write(ASK, 1, None),)).commit(PARTITION, "gone", keep_ms=KEEP_MS)
        )
        async with at_work(street.publisher().consumer):
            await street.settled()
        assert street.chat.tries == 0

    async def test_that_the_channel_cannot_hold_is_shown_as_incomplete(self, street: Street):
        street.chat.limits = Limits(value=3)
        await street.ask()
        async with at_work(street.publisher().consumer):
            await street.settled()
        (view,) = street.chat.posted
        assert isinstance(view, AskView)
        assert not view.complete


class TestANotice:
    async def test_of_a_finished_run_is_posted(self, street: Street):
        run = run_record(phase=Phase.FINISHED, finish=FinishReason.END_TURN, text="done")
        surface = SurfaceRecord(
            id=surface_id(RUN, "chat", "general"), of=RUN, kind="notice", channel="chat", target="general"
        )
        written = Changes(writes=(Write(document(RUN), 0, dump_run(run)),))
        await street._commit(written + asking.surface_wanted(surface))
        async with at_work(street.publisher().consumer):
            await until(lambda: street.chat.posted, what="the notice")
        (notice,) = street.chat.posted
        assert isinstance(notice, RunNotice)
        assert notice.line == "done"


def delayed(**how: float) -> DeliveryDelayed:
    return DeliveryDelayed("the channel is down", **how)


@dataclass
class Later:
    """A publisher whose channel is down, and when it means to try again."""

    street: Street
    again_at: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        between, meddler = meddling(self.street.store)
        meddler.before = self._note
        self.consumer = self.street.publisher(store=between).consumer

    async def tried(self, tries: int) -> int:
        """How long it waits after so many tries."""
        await until(lambda: len(self.again_at) == tries and not self.consumer.active, what=f"{tries} tries")
        return self.again_at[-1] - self.street.clock.now_ms()

    async def waits(self, tries: int) -> int:
        """The same; and then that time passes."""
        wait = await self.tried(tries)
        self.street.clock.move(ms=wait + 1)
        return wait

    async def _note(self, commit: Commit) -> None:
        self.again_at += [c.at_ms for c in commit.work if isinstance(c, Release) and c.at_ms is not None]


class TestADelay:
    @pytest.fixture
    def later(self, street: Street) -> Later:
        return Later(street)

    async def test_backs_off_until_it_succeeds(self, street: Street, later: Later):
        street.chat.failures = [delayed() for _ in range(5)]
        await street.ask()
        async with at_work(later.consumer):
            for tries, expected in enumerate((1_000, 2_000, 4_000, 8_000, 16_000), 1):
                wait = await later.waits(tries)
                assert expected - 500 <= wait <= expected
            surface = await street.settled()
        assert (surface.state, surface.tries, surface.error) == (SurfaceState.SHOWN, 0, "")
        assert await street.kinds() == [Kind.DELIVERED]
        assert await street.undelivered() == []

    async def test_is_as_long_as_the_platform_says(self, street: Street, later: Later):
        street.chat.failures = [delayed(retry_after=37.0)]
        await street.ask()
        async with at_work(later.consumer):
            assert 36_000 <= await later.waits(1) <= 37_000
            await street.settled()

    async def test_is_seen_by_operators_while_it_lasts(self, street: Street, later: Later):
        street.chat.failures = [delayed(), delayed()]
        await street.ask()
        async with at_work(later.consumer):
            await later.tried(1)
            assert await street.undelivered() == [SURFACE]
            surface = await street.surface()
            assert (surface.state, surface.tries) == (SurfaceState.WANTED, 1)
            assert surface.error == "the channel is down"
            assert await street.kinds() == []

    async def test_that_never_ends_is_a_failure_in_the_end(self, street: Street, later: Later):
        street.chat.failures = [delayed() for _ in range(GIVE_UP_AFTER)]
        await street.ask()
        async with at_work(later.consumer):
            waits = [await later.waits(tries) for tries in range(1, GIVE_UP_AFTER)]
            surface = await street.settled()
        assert max(waits) <= LONGEST_DELAY_MS
        assert (surface.state, surface.tries) == (SurfaceState.FAILED, GIVE_UP_AFTER)
        assert await street.kinds() == [Kind.DELIVERY_FAILED]
        assert await street.undelivered() == [SURFACE]

    async def test_in_which_the_ask_is_decided_ends_with_the_outcome_shown(
        self, street: Street, later: Later
    ):
        """The first try may have reached people: what stands there must not look open."""
        street.chat.failures = [delayed()]
        await street.ask()
        async with at_work(later.consumer):
            await later.tried(1)
            await street.move(decision())
            await street.settled()
        (view,) = street.chat.posted
        assert isinstance(view, AskView)
        assert not view.open


class TestARefusal:
    async def test_is_final_and_seen(self, street: Street):
        street.chat.failures = [DeliveryRefused("the channel is archived")]
        await street.ask()
        async with at_work(street.publisher().consumer):
            surface = await street.settled()
        assert street.chat.tries == 1
        assert (surface.state, surface.error) == (SurfaceState.FAILED, "the channel is archived")
        assert await street.undelivered() == [SURFACE]
        (row,) = await street.rows()
        assert (row.kind, row.note) == (Kind.DELIVERY_FAILED, "the channel is archived")

    async def test_leaves_the_ask_open(self, street: Street):
        street.chat.failures = [DeliveryRefused("gone")]
        await street.ask()
        async with at_work(street.publisher().consumer):
            await street.settled()
        (stored,) = await street.store.load([ASK])
        assert stored is not None
        assert load_ask(stored.body).open

    async def test_is_forgotten_if_a_later_delivery_succeeds(self, street: Street):
        street.chat.failures = [DeliveryRefused("we were not invited yet")]
        await street.ask()
        async with at_work(street.publisher().consumer):
            await street.settled()
            (stored,) = await street.store.load([ASK])
            assert stored is not None
            changed = replace(load_ask(stored.body), origin="#support")
            await street._commit(asking.changed(changed, stored.version))
            surface = await street.settled()
        assert (surface.state, surface.error) == (SurfaceState.SHOWN, "")
        assert await street.undelivered() == []
        assert await street.kinds() == [Kind.DELIVERY_FAILED, Kind.DELIVERED]


class TestAPublisherThatStands:
    async def test_still_leaves_the_reference_to_the_one_who_took_over(self, street: Street):
        """It posted, and lost its claim before it could say where: one card more, and a single reference."""
        between, meddler = meddling(street.store)
        slow, other = street.publisher(store=between), street.publisher(instance="other")
        stood: list[Commit] = []

        async def stand_still(commit: Commit) -> None:
            if not stood:
                stood.append(commit)
                street.clock.move(ms=LEASE_MS + 1)
                async with at_work(other.consumer):
                    await street.settled()

        meddler.before = stand_still
        await street.ask()
        async with at_work(slow.consumer):
            await until(lambda: stood and not slow.consumer.active, what="it goes on")
        assert len(street.chat.posted) == 2
        assert (await street.surface()).refs == {"ts": "2"}
        assert await street.kinds() == [Kind.DELIVERED]
