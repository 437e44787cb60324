"""One claimed run, driven until it rests: load, plan, commit, start, wait.

Owns the order of things: nothing starts before its commit, every result is committed before anything follows from it,
and a claim that was lost writes nothing more. What a tool returns after that still settles its attempt.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from agent import told
from agent.ids import AttemptId
from agent.messages import ResultStatus
from agent.moves import (
    CallEvent,
    CallModel,
    Conclude,
    Event,
    InputAsked,
    RunTool,
    ToolRaised,
    ToolReturned,
)
from agent.perform import Executed, Performer
from agent.run import Phase
from gateway.changes import DRIVER_KEPT_MS
from gateway.desk import ROUNDS, Desk
from gateway.door import Setting
from gateway.errors import ClaimLost, Conflict, NotRecorded, Retryable
from gateway.heartbeat import Heartbeat
from gateway.partitions import partition_of
from gateway.planning import Plan, Starts
from gateway.ports import Claimed, Clock, Committed, Hold, Release, Store
from gateway.routing import Routes
from gateway.seal import Key
from gateway.snapshot import Snapshot, documents_of, read
from gateway.step import Step, assemble
from gateway.telemetry import logger
from gateway.transcripts import Transcripts

RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every drive of this process works with."""

    store: Store
    clock: Clock
    heartbeat: Heartbeat
    desk: Desk
    routes: Routes
    key: Key
    transcripts: Transcripts


@dataclass
class Drive:
    """One run in this process's hands."""

    means: Means
    performer: Performer
    hold: Hold
    snapshot: Snapshot
    seen: int
    """The generation whose facts are in the snapshot."""
    underway: dict[asyncio.Task[Event], str] = field(default_factory=dict[asyncio.Task[Event], str])
    """Each task with the call that it is about; empty for a model call."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    """Something underway is done, or something moved."""
    _moved: bool = False
    _generation: int = 0
    _lost: bool = False
    _serial: itertools.count[int] = field(default_factory=itertools.count)

    async def run(self) -> None:
        """Until the run rests, ends, or is no longer ours."""
        self._generation = self.seen
        self.means.heartbeat.watch(self.hold, self._on_moved)
        events: list[Event] = []
        try:
            resting = await self._step(events, fresh=True)
            while not resting:
                events = await self._wait()
                resting = await self._step(events, fresh=False)
            events = []
        except ClaimLost:
            logger.warning("claim-lost", run_id=self.hold.member)
        finally:
            self._leave(events)

    def poke(self) -> None:
        """Something about this run may have changed in the store."""
        self._moved = True
        self._news.set()

    @property
    def waits_for_people(self) -> bool:
        return bool(self.snapshot.run.asks)

    # --- one step -----------------------------------------------------------------------------------------------

    async def _step(self, events: Sequence[Event], *, fresh: bool) -> bool:
        """Plan, commit, start. True once nothing is left to do here."""
        for _ in range(ROUNDS):
            plan = await self._plan(events, fresh=fresh)
            release = self._release(plan)
            step = assemble(plan, release=release)
            if release is None and step.after == self.snapshot:
                self._settle_dropped(plan.dropped)
                self._start(
                    plan.starts, confirmed=True
                )  # nothing to write: a model call is simply made again
                return False
            try:
                committed = await self._commit(plan, step)
            except Conflict:
                await self._refresh()
                continue
            self._committed(plan, step)
            self._settle_dropped(plan.dropped)
            if release is None:
                self._start(plan.starts, confirmed=committed.confirmed)
            return release is not None
        raise ClaimLost(queue=self.hold.queue, member=self.hold.member)

    async def _plan(self, events: Sequence[Event], *, fresh: bool) -> Plan:
        run = self.snapshot.run
        setting = Setting(
            performer=self.performer,
            routes=self.means.routes,
            key=self.means.key,
            instance=self.means.heartbeat.instance,
            now_ms=self.means.clock.now_ms(),
        )
        transcript = await self.means.transcripts.upto(run.session_id, run.length)
        told = {event.call_id for event in events if isinstance(event, CallEvent)}
        live = {call for call in self.underway.values() if call} | told
        plan = Plan(setting=setting, snapshot=self.snapshot, transcript=transcript, live=live)
        await plan.follow(events, fresh=fresh)
        return plan

    def _release(self, plan: Plan) -> Release | None:
        """The end of our claim, when nothing is underway and nothing starts now."""
        if self.underway and plan.state.phase is not Phase.FINISHED:
            return None
        queue, member = self.hold.queue, self.hold.member
        delay = plan.calls_model_later
        if delay is not None:
            return Release(queue, member, self.seen, at_ms=plan.setting.now_ms + int(delay * 1000))
        if plan.starts:
            return None
        return Release(queue, member, self.seen, leave=True)

    async def _commit(self, plan: Plan, step: Step) -> Committed:
        """Commit once; while the store is unsure, ask again under the same operation id for as long as we hold."""
        commit = step.changes.commit(
            partition_of(self.hold.member),
            f"{self.hold.token}/{self.hold.member}/{next(self._serial)}",
            keep_ms=DRIVER_KEPT_MS,
            hold=self.hold,
            confirm=plan.spends,
        )
        while not self._lost:
            try:
                return await self.means.store.commit(commit)
            except NotRecorded as error:
                logger.warning("not-recorded", run_id=self.hold.member, reason=error.reason)
                await asyncio.sleep(RETRY_SECONDS)
        raise ClaimLost(queue=self.hold.queue, member=self.hold.member)

    def _committed(self, plan: Plan, step: Step) -> None:
        run = plan.snapshot.run
        self.means.transcripts.extend(run.session_id, run.length, plan.messages)
        self.snapshot = step.after

    async def _refresh(self) -> None:
        """Load everything again. The generation is read first: what moves later is noticed later."""
        generation = self._generation
        stored = await self.means.store.load(documents_of(self.snapshot))
        self.snapshot = read(self.hold.member, {s.id: s for s in stored if s is not None})
        self.seen = generation

    # --- what is underway ---------------------------------------------------------------------------------------

    def _start(self, starts: Sequence[Starts], *, confirmed: bool) -> None:
        for start in starts:
            match start:
                case CallModel():
                    self._underway("", self._think())
                case Conclude(call_id=call_id):
                    self._underway(call_id, self.performer.conclude(self.snapshot.run.state, call_id))
                case RunTool(call_id=call_id):
                    work = self._execute(start) if confirmed else self._unconfirmed(start)
                    self._underway(call_id, work)
                case _:
                    assert_never(start)

    def _underway(self, call_id: str, work: Coroutine[Any, Any, Event]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._news.set())
        self.underway[task] = call_id

    async def _think(self) -> Event:
        run = self.snapshot.run
        transcript = tuple(await self.means.transcripts.upto(run.session_id, run.length))
        return await self.performer.think(run.state, transcript)

    async def _execute(self, start: RunTool) -> Event:
        """Call the tool, if the claim still lives this very moment: afterwards somebody else may be judging it."""
        if not self.means.heartbeat.alive(self.hold):
            return _not_started(start, "the process lost its claim before the tool was started")
        return await self.performer.execute(self.snapshot.run.state, start.call_id, start.attempt, self._late)

    async def _unconfirmed(self, start: RunTool) -> Event:
        return _not_started(start, "the approval's use was not confirmed by the replicas")

    async def _wait(self) -> list[Event]:
        """Events of whatever is done; none when only the store has news. Raises ClaimLost."""
        await self._news.wait()
        self._news.clear()
        if self._lost:
            raise ClaimLost(queue=self.hold.queue, member=self.hold.member)
        if self._moved:
            self._moved = False
            await self._refresh()
        return [task.result() for task in self._done()]

    def _done(self) -> list[asyncio.Task[Event]]:
        done = [task for task in self.underway if task.done()]
        for task in done:
            del self.underway[task]
        return done

    def _on_moved(self, generation: int | None) -> None:
        if generation is None:
            self._lost = True
        else:
            self._generation = generation
        self.poke()

    # --- results that come when the run is no longer ours ----------------------------------------------------------

    def _late(self, result: Executed) -> None:
        """An attempt that was given up has answered after all."""
        settle = _result_of(result)
        self._settle(result.attempt_id, *settle)

    def _settle_dropped(self, dropped: Sequence[Event]) -> None:
        for event in dropped:
            if isinstance(event, ToolReturned | ToolRaised | InputAsked):
                self._late(event)

    def _leave(self, events: Sequence[Event]) -> None:
        """Go, and see to it that results which could not be committed, or are still to come, are stored."""
        self._settle_dropped(events)
        for task, call_id in self.underway.items():
            if call_id:
                task.add_done_callback(self._settle_task)
            else:
                task.cancel()

    def _settle_task(self, task: asyncio.Task[Event]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._settle_dropped([task.result()])

    def _settle(self, attempt: AttemptId, content: str, status: ResultStatus) -> None:
        settling = asyncio.ensure_future(_settle_surely(self.means.desk, attempt, content, status))
        _SETTLING.add(settling)
        settling.add_done_callback(_SETTLING.discard)


_SETTLING: set[asyncio.Future[None]] = set()
"""Keeps late results referenced until they are stored; the event loop alone holds tasks weakly."""


async def _settle_surely(desk: Desk, attempt: AttemptId, content: str, status: ResultStatus) -> None:
    """A result is a fact: store it as soon as the store can be reached."""
    for round_ in itertools.count():
        try:
            if not await desk.settle_late(attempt, content, status):
                logger.warning("executed-late", attempt_id=attempt)
            return
        except Retryable as error:
            logger.warning("not-settled", attempt_id=attempt, reason=str(error))
            await asyncio.sleep(min(RETRY_SECONDS * 2**round_, 30.0))


def _not_started(start: RunTool, problem: str) -> ToolRaised:
    """That a recorded attempt was never made is a fact as well, and spares people a question."""
    return ToolRaised(call_id=start.call_id, attempt_id=start.attempt.id, error=problem, executed=False)


def _result_of(result: Executed) -> tuple[str, ResultStatus]:
    match result:
        case ToolReturned(content=content):
            return content, ResultStatus.OK
        case ToolRaised(error=error, executed=executed):
            return told.raised(error) if executed else told.refused("NOT_EXECUTED", error), ResultStatus.ERROR
        case InputAsked():
            return told.LATE_INPUT, ResultStatus.ERROR
        case _:
            assert_never(result)


def drive_of(means: Means, performer: Performer, claim: Claimed, hold: Hold) -> Drive:
    """A drive of a run that was just claimed, from the documents that came with the claim."""
    return Drive(means, performer, hold, read(claim.member, claim.documents), claim.generation)
