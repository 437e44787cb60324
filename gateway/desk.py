"""Takes what people decide and makes it binding: one commit, checked against what they saw.

Owns votes, decisions, partial answers, withdrawals, stops and late results. Every channel comes through here; nothing
else writes an answer. Who is asking is already verified; whether they may is checked here, at the last moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue

from agent.checkin import CheckIn, OutcomeQuestion, require_decision
from agent.decision import (
    AnyDecision,
    Approved,
    Declined,
    InputCancelled,
    InputReceived,
    RunAgain,
    with_note_cut,
)
from agent.ids import AttemptId, RunId
from agent.input_request import InputRequest, accept, check_cancel
from agent.messages import ResultStatus
from agent.run import Phase
from gateway import asking, journal
from gateway.ask import AskRecord, BindingDecision, Edit, Vote, load_ask
from gateway.authority import Authority
from gateway.changes import DRIVER_KEPT_MS, INBOUND_KEPT_MS, Changes, wake
from gateway.edit import Editor
from gateway.errors import AlreadyDecided, CallerError, Conflict, Retryable, TooLate
from gateway.handover import Handover
from gateway.ids import AskId, PersonId, attempt_document, document
from gateway.lifecycle import (
    Edited,
    Filled,
    Lapsed,
    Move,
    Revoked,
    Ruled,
    Superseded,
    Voted,
    Withdrew,
    transition,
)
from gateway.partitions import partition_of
from gateway.ports import Clock, DocumentId, Expect, Store, Write
from gateway.queues import runs_of
from gateway.seal import Key, seal
from gateway.session import (
    AttemptRecord,
    AttemptState,
    RunRecord,
    SessionRecord,
    Stop,
    dump_attempt,
    dump_session,
    load_attempt,
    load_run,
    load_session,
)

ROUNDS = 8
"""How often a commit that met somebody else's is made afresh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What one person wants of one ask, having seen one revision of it.

    `operation` is unique to the click: coming again, it changes nothing and gets the same answer.
    """

    ask_id: AskId
    revision: int
    person: PersonId
    decision: AnyDecision
    channel: str
    operation: str
    digest: str | None = None
    """What the surface showed, where it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What really happened. `record` is the ask as stored now.

    An ask that is still open after it got a vote, a part of its values, or arguments that a rule changed and that
    have to be looked at again (`look_again`). Not `confirmed`: stored, but not by as many replicas as configured.
    """

    record: AskRecord
    at_ms: int
    confirmed: bool = True
    look_again: bool = False


class UnknownAsk(CallerError):
    """No ask of this id: it never was, or was decided long ago."""

    def __init__(self, ask_id: str) -> None:
        super().__init__(f"there is no ask {ask_id}: it was decided long ago, or the id is mistyped")


class UnknownRun(CallerError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id}: see `signoff runs list`")


class AskClosed(AlreadyDecided):
    """Somebody, or the clock, was first. `record` says who and what."""

    def __init__(self, record: AskRecord) -> None:
        super().__init__(f"ask {record.id} is {record.state} already")
        self.record = record


class AskChanged(CallerError):
    """What the person saw is not what would run now. `record` is the current revision: look again."""

    def __init__(self, record: AskRecord) -> None:
        super().__init__(f"ask {record.id} is at revision {record.revision} now: look at it again")
        self.record = record


class CallSettled(AlreadyDecided):
    """The outcome that was asked about became known meanwhile."""


class DeskBusy(Retryable):
    """Others wrote faster, every time. Nothing was recorded; pressing again is fine."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The one resolver of asks, for every channel."""

    store: Store
    clock: Clock
    authority: Authority
    editor: Editor
    key: Key
    handover: Handover

    async def submit(self, submission: Submission) -> Recorded:
        """Record a decision, a vote or a partial answer.

        Raises UnknownAsk, AskClosed, AskChanged, NotAllowed, DecisionRequiredError, InputRequestError, EditRefused,
        CallSettled, DeskBusy or NotRecorded; each leaves the ask as it was.
        """
        for _ in range(ROUNDS):
            record, version = await self._ask(submission.ask_id)
            if not record.open:
                return _already(record, submission)
            try:
                return await self._record(submission, record, version)
            except Conflict:
                continue
            except TooLate as error:
                raise AskClosed(transition(record, Lapsed(error.now_ms))) from error
        raise DeskBusy(f"ask {submission.ask_id} is being changed by others: try again")

    async def withdraw(self, ask_id: AskId, by: PersonId, operation: str) -> Recorded:
        """Take back an open ask, or a yes that nothing has used yet. Raises UnknownAsk, AskClosed."""
        for _ in range(ROUNDS):
            record, version = await self._ask(ask_id)
            now = self.clock.now_ms()
            move = Withdrew(by, now) if record.open else Revoked(by, now)
            moved = transition(record, move)
            changes = asking.changed(moved, version) + self._wake(record)
            changes += Changes(rows=(journal.withdrawn(moved, by),))
            try:
                return await self._commit(changes, moved, operation)
            except Conflict:
                continue
        raise DeskBusy(f"ask {ask_id} is being changed by others: try again")

    async def stop(self, run_id: RunId, by: PersonId, operation: str) -> RunRecord:
        """End a run: its open asks are withdrawn and unspent approvals revoked, in one commit.

        What a tool has started is waited for. Raises UnknownRun.
        """
        for _ in range(ROUNDS):
            run, run_version = await self._run(run_id)
            if run.state.phase is Phase.FINISHED:
                return run
            session, session_version = await self._session(run)
            changes = Changes(
                expect=(Expect(document(run_id), run_version),),
                writes=(
                    Write(
                        session.id,
                        session_version,
                        dump_session(replace(session, stop=Stop(by, self.clock.now_ms()))),
                    ),
                ),
                rows=(journal.stop_requested(run, by),),
            )
            changes += await self._withdraw_all(run.asks.values(), by)
            changes += wake(runs_of(run.state.agent), run_id)
            try:
                await self._send(changes, run_id, operation, keep_ms=INBOUND_KEPT_MS)
            except Conflict:
                continue
            return run
        raise DeskBusy(f"run {run_id} is being changed by others: try again")

    async def settle_late(self, attempt: AttemptId, content: str, status: ResultStatus) -> bool:
        """Store the result of an attempt whose run moved on without us. Whether it still mattered."""
        for _ in range(ROUNDS):
            stored = (await self.store.load([attempt_document(attempt)]))[0]
            if stored is None:
                return False
            record = load_attempt(stored.body)
            if record.state is AttemptState.SETTLED:
                return False
            try:
                await self._settle_late(record, stored.version, content, status)
            except Conflict:
                continue
            return record.state is AttemptState.STARTED
        raise DeskBusy(f"attempt {attempt} is being changed by others: try again")

    async def note_refused(self, submission: Submission, code: str) -> None:
        """Leave a `refused` row for an answer that was not taken. Never deduplicated: each try is a fact."""
        record, _ = await self._ask(submission.ask_id)
        row = journal.answer_refused(record, code, by=submission.person, channel=submission.channel)
        operation = f"refused:{submission.operation}"
        await self._send(Changes(rows=(row,)), record.id, operation, keep_ms=DRIVER_KEPT_MS)

    async def _settle_late(
        self, record: AttemptRecord, version: int, content: str, status: ResultStatus
    ) -> None:
        settled = replace(record, state=AttemptState.SETTLED, content=content, status=status, late=True)
        mattered = record.state is AttemptState.STARTED
        row = journal.executed(record, status) if mattered else journal.executed_late(record, status)
        run, _ = await self._run(record.run_id)
        changes = Changes(
            writes=(Write(attempt_document(record.id), version, dump_attempt(settled)),), rows=(row,)
        )
        changes += wake(runs_of(run.state.agent), record.run_id)
        await self._send(changes, record.run_id, f"late:{record.id}", keep_ms=DRIVER_KEPT_MS)

    # --- one decision -------------------------------------------------------------------------------------------

    async def _record(self, submission: Submission, record: AskRecord, version: int) -> Recorded:
        if submission.revision != record.revision:
            raise AskChanged(record)
        if submission.digest is not None and submission.digest != record.digest:
            raise AskChanged(record)
        self.authority.check(record, submission.person)
        decision = with_note_cut(require_decision(record.ask, submission.decision))
        if isinstance(decision, InputReceived):
            return await self._fill(submission, record, version, decision)
        if isinstance(decision, Approved) and decision.arguments is not None:
            return await self._approve_edited(submission, record, version, decision)
        return await self._rule(submission, record, version, decision, Changes())

    async def _rule(
        self,
        submission: Submission,
        record: AskRecord,
        version: int,
        decision: AnyDecision,
        changes: Changes,
    ) -> Recorded:
        """Close the ask by a decision, or count a yes towards its quorum."""
        changes += await self._precondition(record, decision)
        decided = self._bind(record, decision, submission.channel)
        moved = transition(record, self._move(decided, submission))
        changes += asking.changed(moved, version)
        changes += Changes(rows=(journal.decided(moved, decided, self.key),))
        if not moved.open:
            changes += self._wake(record)
        if isinstance(decision, Declined) and record.on_decline == "stop":
            changes += await self._supersede_siblings(record)
        return await self._commit(changes, moved, submission.operation, deadline_ms=record.deadline_ms)

    async def _fill(
        self, submission: Submission, record: AskRecord, version: int, reply: InputReceived
    ) -> Recorded:
        """Add values to an input request; the last missing one closes it."""
        filled = transition(record, Filled(accept(cast(InputRequest, record.ask), reply)))
        request = cast(InputRequest, filled.ask)
        if not request.missing:
            complete = replace(reply, values=_given(request))
            return await self._rule(submission, filled, version, complete, Changes())
        changes = asking.changed(filled, version) + Changes(rows=(journal.input_part(filled, reply),))
        return await self._commit(changes, filled, submission.operation, deadline_ms=record.deadline_ms)

    async def _approve_edited(
        self, submission: Submission, record: AskRecord, version: int, decision: Approved
    ) -> Recorded:
        """Approve other arguments than the agent asked for: a new revision, and the yes to it."""
        run, _ = await self._run(record.run_id)
        revision = await self.editor.revise(record, run, decision.arguments or {})
        if revision is None:
            return await self._rule(submission, record, version, replace(decision, arguments=None), Changes())
        before = cast(CheckIn, record.ask).action.arguments_json
        edit = Edit(submission.person, self.clock.now_ms(), before)
        edited = transition(record, Edited(revision.action, revision.sentence, edit))
        rows = Changes(rows=(journal.edited(edited, edit, self.key),))
        if revision.transformed:
            changes = asking.changed(edited, version) + rows
            shown = await self._commit(changes, edited, submission.operation, deadline_ms=record.deadline_ms)
            return replace(shown, look_again=True)
        decision = replace(decision, arguments=revision.action.arguments)
        return await self._rule(submission, edited, version, decision, rows)

    def _bind(self, record: AskRecord, decision: AnyDecision, channel: str) -> BindingDecision:
        return BindingDecision(
            decision=decision,
            at_ms=self.clock.now_ms(),
            channel=channel,
            revision=record.revision,
            digest=record.digest,
            seal=seal(
                self.key, ask_id=record.id, revision=record.revision, digest=record.digest, decision=decision
            ),
        )

    def _move(self, decided: BindingDecision, submission: Submission) -> Move:
        if not isinstance(decided.decision, Approved):
            return Ruled(decided)
        vote = Vote(submission.person, decided.revision, decided.at_ms, submission.channel)
        return Voted(vote, decided)

    async def _precondition(self, record: AskRecord, decision: AnyDecision) -> Changes:
        """What else must hold: an answer about an outcome needs an outcome that is still unknown."""
        match record.ask:
            case OutcomeQuestion(attempt_id=attempt_id):
                return await self._give_up_attempt(AttemptId(attempt_id))
            case InputRequest() as request:
                if isinstance(decision, InputCancelled):
                    check_cancel(request, decision)
                return Changes()
            case _:
                return Changes()

    async def _give_up_attempt(self, attempt: AttemptId) -> Changes:
        """Whoever comes with this attempt's result from now on is late. Raises CallSettled if it came already."""
        stored = (await self.store.load([attempt_document(attempt)]))[0]
        if stored is None:
            return Changes()
        record = load_attempt(stored.body)
        if record.state is AttemptState.SETTLED:
            raise CallSettled("its result came in meanwhile: the run goes on with that")
        abandoned = dump_attempt(replace(record, state=AttemptState.ABANDONED))
        return Changes(writes=(Write(stored.id, stored.version, abandoned),))

    async def _supersede_siblings(self, record: AskRecord) -> Changes:
        """Under `on_decline="stop"` one no closes the run's other asks, in the same commit."""
        run, run_version = await self._run(record.run_id)
        now = self.clock.now_ms()
        changes = Changes(expect=(Expect(document(record.run_id), run_version),))
        for sibling, version in await self._asks(a for a in run.asks.values() if a != record.id):
            if sibling.open and not isinstance(sibling.ask, OutcomeQuestion):
                closed = transition(sibling, Superseded("another step of this run was declined", now))
                changes += asking.changed(closed, version)
                changes += Changes(rows=(journal.superseded(closed),))
        return changes

    async def _withdraw_all(self, ask_ids: Iterable[AskId], by: PersonId) -> Changes:
        changes, now = Changes(), self.clock.now_ms()
        for record, version in await self._asks(ask_ids):
            unspent = isinstance(record.answer, Approved | RunAgain) and not (
                record.spent_by or record.revoked_by
            )
            if record.open or unspent:
                moved = transition(record, Withdrew(by, now) if record.open else Revoked(by, now))
                changes += asking.changed(moved, version) + Changes(rows=(journal.withdrawn(moved, by),))
        return changes

    # --- the store ----------------------------------------------------------------------------------------------

    def _wake(self, record: AskRecord) -> Changes:
        return wake(runs_of(record.agent), record.run_id)

    async def _commit(
        self, changes: Changes, record: AskRecord, operation: str, *, deadline_ms: int | None = None
    ) -> Recorded:
        committed = await self.handover.commit(
            changes.commit(
                partition_of(record.id),
                operation,
                keep_ms=INBOUND_KEPT_MS,
                not_after_ms=deadline_ms,
                confirm=True,
            )
        )
        if committed.replayed:
            record, _ = await self._ask(record.id)
        return Recorded(record=record, at_ms=committed.at_ms, confirmed=committed.confirmed)

    async def _send(self, changes: Changes, about: str, operation: str, *, keep_ms: int) -> None:
        await self.handover.commit(
            changes.commit(partition_of(about), operation, keep_ms=keep_ms, confirm=True)
        )

    async def _ask(self, ask_id: AskId) -> tuple[AskRecord, int]:
        stored = (await self.store.load([ask_id]))[0]
        if stored is None:
            raise UnknownAsk(ask_id)
        return load_ask(stored.body), stored.version

    async def _asks(self, ask_ids: Iterable[AskId]) -> list[tuple[AskRecord, int]]:
        stored = await self.store.load(list(ask_ids))
        return [(load_ask(s.body), s.version) for s in stored if s is not None]

    async def _run(self, run_id: RunId) -> tuple[RunRecord, int]:
        stored = (await self.store.load([document(run_id)]))[0]
        if stored is None:
            raise UnknownRun(run_id)
        return load_run(stored.body), stored.version

    async def _session(self, run: RunRecord) -> tuple[SessionRecord, int]:
        stored = (await self.store.load([DocumentId(run.session_id)]))[0]
        if stored is None:
            raise UnknownRun(run.state.run_id)
        return load_session(stored.body), stored.version


def _already(record: AskRecord, submission: Submission) -> Recorded:
    """The same person's same answer, again, is no news; anybody else is told who was first."""
    given = record.answer
    if given is not None and given.by == submission.person and given == with_note_cut(submission.decision):
        return Recorded(record=record, at_ms=record.closed_at_ms or 0)
    raise AskClosed(record)


def _given(request: InputRequest) -> dict[str, JsonValue]:
    """The values that people gave, without those that the tool declared."""
    return {name: value for name, value in request.values.items() if request.origins.get(name) == "response"}
