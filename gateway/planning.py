"""One step of a run, worked out before anything is written: events in, a commit and things to start out.

Owns how the loop's commands and events become records. Runs no tool and calls no model; judging, which has no side
effects, is the only user code in here, and may be repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never, cast

from agent.checkin import AnyAsk, CheckIn
from agent.decision import Approved, Declined, Happened, RunAgain
from agent.events import CheckInDecided, CheckInRequested
from agent.ids import AskKey, AttemptId
from agent.loop import IllegalEvent, advance, pending
from agent.messages import AssistantMessage, ResultsMessage, ResultStatus, UserMessage
from agent.moves import (
    AttemptEvent,
    CallModel,
    CloseAsk,
    Command,
    Conclude,
    Decided,
    Event,
    Finish,
    Judge,
    OpenAsk,
    OutcomeUnknown,
    RunTool,
    Settled,
    ToolRaised,
    ToolReturned,
)
from agent.run import Attempt, Call, CallPhase, RunState
from gateway import journal
from gateway.ask import AskRecord, AskState, Outcome, OutcomeKind
from gateway.door import Refused, Setting, is_idempotent, refuse
from gateway.facts import Facts, next_event
from gateway.ids import AskId, ask_id
from gateway.instance import known_gone
from gateway.lifecycle import Reported, Spent, Superseded, transition
from gateway.session import AttemptRecord, AttemptState
from gateway.snapshot import Snapshot
from gateway.telemetry import logger
from gateway.together import together

Said = UserMessage | AssistantMessage | ResultsMessage
Messages = Sequence[Said]
Starts = CallModel | RunTool | Conclude
"""What can only begin once the commit is there."""


@dataclass(kw_only=True)
class Plan:
    """A step in the making. Everything it collects becomes true with one commit, or is thrown away."""

    setting: Setting
    snapshot: Snapshot
    transcript: Messages
    live: Collection[str]
    state: RunState = field(init=False)
    messages: list[Said] = field(default_factory=list[Said])
    asks: dict[AskKey, AskId] = field(init=False)
    authorized_by: dict[str, AskId] = field(init=False)
    asked: tuple[AskId, ...] = field(init=False)
    records: dict[AskId, AskRecord] = field(init=False)
    opened: set[AskId] = field(default_factory=set[AskId])
    changed: set[AskId] = field(default_factory=set[AskId])
    attempts: dict[AttemptId, AttemptRecord] = field(init=False)
    attempts_changed: set[AttemptId] = field(default_factory=set[AttemptId])
    rows: list[bytes] = field(default_factory=list[bytes])
    starts: list[Starts] = field(default_factory=list[Starts])
    spends: bool = False
    dropped: list[Event] = field(default_factory=list[Event])
    """Events that came too late for the run: a tool's result among them is still a fact."""

    def __post_init__(self) -> None:
        run = self.snapshot.run
        self.state = run.state
        self.asks, self.authorized_by, self.asked = dict(run.asks), dict(run.authorized_by), run.asked
        self.records = {id_: record for id_, (record, _) in self.snapshot.asks.items()}
        self.attempts = {id_: record for id_, (record, _) in self.snapshot.attempts.items()}

    async def follow(self, events: Sequence[Event], *, fresh: bool) -> None:
        """Apply what the store knows, then these events, then whatever follows from them.

        `fresh`: the run was just claimed, and what its state waits for is underway nowhere.
        """
        await self._learn()
        if fresh:
            # What was learned may already have led to the model: it is called once.
            await self._carry_out([command for command in pending(self.state) if command not in self.starts])
        for event in events:
            await self._apply(event)
        await self._learn()

    @property
    def calls_model_later(self) -> float | None:
        """Seconds until the next model call, when there is nothing else to do until then."""
        waits = [s.delay for s in self.starts if isinstance(s, CallModel) and s.delay]
        return waits[0] if waits and len(self.starts) == 1 else None

    async def _learn(self) -> None:
        while (event := next_event(self._facts())) is not None:
            await self._apply(event)

    def _facts(self) -> Facts:
        starting = {start.call_id for start in self.starts if isinstance(start, RunTool)}
        return Facts(
            state=self.state,
            stop=self.snapshot.session.stop,
            asks=self.asks,
            records=self.records,
            attempts=self.attempts,
            live={*self.live, *starting},
            idempotent=self._idempotent,
            gone=self._gone,
        )

    async def _apply(self, event: Event) -> None:
        before = self.state
        try:
            step = advance(before, event)
        except IllegalEvent as error:
            logger.info("event-dropped", run_id=before.run_id, reason=str(error))
            self.dropped.append(event)
            return
        self._note(before, event)
        self.state = step.state
        self.messages.extend(step.messages)
        await self._carry_out(step.commands)

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        judging = [command for command in commands if isinstance(command, Judge)]
        for command in commands:
            await self._prepare(command)
        if judging:
            said = [*self.transcript, *self.messages]
            state, judge = self.state, self.setting.performer.judge
            for judged in await together([judge(state, j.call_id, said) for j in judging]):
                await self._apply(judged)

    async def _prepare(self, command: Command) -> None:
        match command:
            case OpenAsk(ask=ask):
                self._open(ask)
            case CloseAsk(ask_key=key):
                self._close(key)
            case RunTool():
                await self._authorize(command)
            case CallModel() | Conclude():
                self.starts.append(command)
            case Finish():
                self._finish()
            case Judge():
                pass
            case _:
                assert_never(command)

    # --- asks ---------------------------------------------------------------------------------------------------

    def _open(self, ask: AnyAsk) -> None:
        run, now = self.snapshot.run, self.setting.now_ms
        id_ = ask_id(self.state.run_id, ask.key)
        route = self.setting.routes.choose(agent=self.state.agent, ask=ask)
        lasts = None if ask.kind == "outcome_question" else route.expire_after_ms
        record = AskRecord(
            id=id_,
            run_id=self.state.run_id,
            session_id=run.session_id,
            agent=self.state.agent,
            tenant=self.state.tenant,
            ask=ask,
            opened_at_ms=now,
            route=route.name,
            approvers=route.approvers,
            requesters=run.authors,
            origin=run.origin.place,
            deadline_ms=now + lasts if lasts is not None else None,
            on_expiry=self.state.rules.on_expiry,
            on_decline=self.state.rules.on_decline,
            staleness=route.staleness,
            surfaces=route.targets(run.origin),
        )
        self.records[id_], self.asks[ask.key] = record, id_
        self.opened.add(id_)
        self.asked = (*self.asked, id_)[-8:]
        self.rows.append(journal.asked(record, self.setting.key))
        if isinstance(ask, CheckIn):
            self.setting.performer.emit(CheckInRequested.of(self.state.run_id, ask))

    def _close(self, key: AskKey) -> None:
        """Nobody needs to answer this any more; somebody may have, a moment ago."""
        id_ = self.asks.pop(key, None)
        record = self.records.get(id_) if id_ else None
        if record is not None and record.open:
            because = (
                "its result came in" if self.state.closing is None else "another step of this run ended it"
            )
            closed = self._move(record, Superseded(because, self.setting.now_ms))
            self.rows.append(journal.superseded(closed))

    def _move(self, record: AskRecord, move: Superseded | Spent | Reported) -> AskRecord:
        moved = transition(record, move)
        self.records[record.id] = moved
        self.changed.add(record.id)
        return moved

    def _report(self, call_id: str, kind: OutcomeKind, line: str = "") -> None:
        """Tell the card of an authorized call what became of it."""
        record = self.records.get(self.authorized_by[call_id]) if call_id in self.authorized_by else None
        if record is not None and record.state is AskState.DECIDED:
            self._move(record, Reported(Outcome(kind, self.setting.now_ms, line)))

    # --- what an event means for the records ----------------------------------------------------------------------

    def _note(self, before: RunState, event: Event) -> None:
        match event:
            case Decided():
                self._note_decided(event)
            case ToolReturned():
                self._note_executed(before, event, ResultStatus.OK)
            case ToolRaised(executed=True):
                self._note_executed(before, event, ResultStatus.ERROR)
            case Settled(status=status):
                self._note_late(event, status)
            case OutcomeUnknown():
                self._note_unknown(before, event)
            case _:
                pass
        self._forget_answered(event)

    def _note_decided(self, event: Decided) -> None:
        record = self.records[self.asks[event.ask_key]]
        if isinstance(event.decision, Approved | RunAgain):
            self.authorized_by[event.call_id] = record.id
        if isinstance(event.decision, Happened):
            self._report(event.call_id, OutcomeKind.DONE, f"confirmed by {event.decision.by}")
        if isinstance(record.ask, CheckIn) and isinstance(event.decision, Approved | Declined):
            self.setting.performer.emit(CheckInDecided.of(self.state.run_id, record.ask, event.decision))

    def _forget_answered(self, event: Event) -> None:
        key = getattr(event, "ask_key", None)
        if key is not None:
            self.asks.pop(key, None)

    def _note_executed(self, before: RunState, event: AttemptEvent, status: ResultStatus) -> None:
        call = before.call(event.call_id)
        if call is None or call.phase is CallPhase.COLLECTED:
            return
        record = self._settle(event.attempt_id)
        if record is not None:
            self.rows.append(journal.executed(record, status))
        done = status is ResultStatus.OK
        self._report(event.call_id, OutcomeKind.DONE if done else OutcomeKind.FAILED)

    def _note_late(self, event: Settled, status: ResultStatus) -> None:
        done = status is ResultStatus.OK
        self._report(event.call_id, OutcomeKind.DONE if done else OutcomeKind.FAILED)

    def _note_unknown(self, before: RunState, event: OutcomeUnknown) -> None:
        record = self.attempts.get(event.attempt_id)
        call = before.call(event.call_id)
        if record is not None and call is not None:
            self.rows.append(journal.outcome_unknown(record))
        self._report(event.call_id, OutcomeKind.UNKNOWN)

    def _settle(self, attempt: AttemptId) -> AttemptRecord | None:
        record = self.attempts.get(attempt)
        if record is None:
            return None
        self.attempts[attempt] = replace(record, state=AttemptState.SETTLED)
        self.attempts_changed.add(attempt)
        return record

    def _finish(self) -> None:
        """Attempts that nobody waits for any more are given up: a result from now on is late."""
        for id_, record in self.attempts.items():
            if record.state is AttemptState.STARTED:
                self.attempts[id_] = replace(record, state=AttemptState.ABANDONED)
                self.attempts_changed.add(id_)
        self.rows.append(journal.run_finished(replace(self.snapshot.run, state=self.state)))

    # --- starting a tool ------------------------------------------------------------------------------------------

    async def _authorize(self, command: RunTool) -> None:
        """Let a call through the door: spend its approval and record the attempt, or refuse it."""
        call = cast(Call, self.state.call(command.call_id))
        record = self.records.get(self.authorized_by[call.id]) if call.id in self.authorized_by else None
        refusal = await refuse(call, record, setting=self.setting)
        if refusal is not None:
            await self._refuse(call, command.attempt, record, refusal)
            return
        self._abandon_earlier(call)
        if call.approved is not None and record is not None:
            self._spend(record, command.attempt)
        self.attempts[command.attempt.id] = AttemptRecord(
            id=command.attempt.id,
            run_id=self.state.run_id,
            call_id=call.id,
            tool=call.tool,
            instance=self.setting.instance,
            started_at_ms=self.setting.now_ms,
        )
        self.attempts_changed.add(command.attempt.id)
        self.starts.append(command)

    async def _refuse(self, call: Call, attempt: Attempt, record: AskRecord | None, why: Refused) -> None:
        run = self.snapshot.run
        self.rows.append(journal.refused(why.code, run=run, tool=call.tool, ask=record, attempt=attempt.id))
        self._report(call.id, OutcomeKind.NOT_RUN, why.problem)
        await self._apply(
            ToolRaised(call_id=call.id, attempt_id=attempt.id, error=why.problem, executed=False)
        )

    def _spend(self, record: AskRecord, attempt: Attempt) -> None:
        if record.spent_by is None:
            record = self._move(record, Spent(attempt.id, self.setting.now_ms))
            self.rows.append(journal.used(record, attempt.id, self.setting.key))
        self._move(record, Reported(Outcome(OutcomeKind.RUNNING, self.setting.now_ms)))
        self.spends = True

    def _abandon_earlier(self, call: Call) -> None:
        for earlier in call.attempts[:-1]:
            record = self.attempts.get(earlier.id)
            if record is not None and record.state is AttemptState.STARTED:
                self.attempts[earlier.id] = replace(record, state=AttemptState.ABANDONED)
                self.attempts_changed.add(earlier.id)

    def _idempotent(self, name: str) -> bool:
        return is_idempotent(self.setting.performer.spec, name)

    def _gone(self, instance: str) -> bool:
        return instance != self.setting.instance and known_gone(instance)
