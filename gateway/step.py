"""A finished plan as one commit, and the snapshot that is true after it.

Owns the order and completeness of what is written. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent.messages import dump_message
from agent.run import Phase
from agent.spec import AgentSpec
from gateway import asking
from gateway.asking import KEPT_MS
from gateway.changes import Changes
from gateway.ids import AskId, attempt_document, document, surface_id
from gateway.intake import begin
from gateway.planning import Plan
from gateway.ports import Append, DocumentId, Expect, IndexPut, IndexRemove, Release, Write
from gateway.queues import ACTIVE_RUNS, RECENT_RUNS
from gateway.session import RunRecord, SessionRecord, dump_attempt, dump_run, dump_session
from gateway.snapshot import Snapshot, loads_of
from gateway.surface import SurfaceRecord

ATTEMPT_KEPT_MS = 7 * asking.DAY_MS


@dataclass(frozen=True, slots=True)
class Step:
    """What to commit, and the snapshot once it is."""

    changes: Changes
    after: Snapshot


def assemble(plan: Plan, *, release: Release | None) -> Step:
    """Everything that the plan changed. `release` ends the claim with it."""
    run = _run(plan)
    changes = _run_changes(plan, run) + _ask_changes(plan) + _attempt_changes(plan)
    session = plan.snapshot.session
    if run.state.phase is Phase.FINISHED and plan.snapshot.run.state.phase is not Phase.FINISHED:
        session, more = _finish(plan, run)
        changes += more
    else:
        changes += Changes(expect=(Expect(DocumentId(session.id), plan.snapshot.session_version),))
    changes += Changes(rows=tuple(plan.rows), work=(release,) if release else ())
    return Step(changes, _after(plan, run, session))


def _run(plan: Plan) -> RunRecord:
    before = plan.snapshot.run
    done = plan.state.phase is Phase.FINISHED
    return replace(
        before,
        state=plan.state,
        asks={} if done else plan.asks,
        authorized_by=_current(plan),
        asked=plan.asked,
        length=before.length + len(plan.messages),
        finished_at_ms=before.finished_at_ms or (plan.setting.now_ms if done else None),
    )


def _current(plan: Plan) -> dict[str, AskId]:
    """Approvals of calls of this turn; those of earlier turns are settled."""
    calls = {call.id for call in plan.state.calls}
    return {call: ask for call, ask in plan.authorized_by.items() if call in calls}


def _run_changes(plan: Plan, run: RunRecord) -> Changes:
    id_ = document(run.state.run_id)
    if run == plan.snapshot.run:
        return Changes(expect=(Expect(id_, plan.snapshot.run_version),))
    kept = KEPT_MS if run.finished_at_ms is not None else None
    entries = tuple(dump_message(message) for message in plan.messages)
    return Changes(
        writes=(Write(id_, plan.snapshot.run_version, dump_run(run), loads=loads_of(run), expires_ms=kept),),
        appends=(Append(DocumentId(run.session_id), entries),) if entries else (),
    )


def _ask_changes(plan: Plan) -> Changes:
    changes = Changes()
    for id_ in plan.opened:
        changes += asking.opened(plan.records[id_])
    for id_ in plan.changed - plan.opened:
        changes += asking.changed(plan.records[id_], plan.snapshot.asks[id_][1])
    return changes


def _attempt_changes(plan: Plan) -> Changes:
    versions: Mapping[str, int] = {id_: version for id_, (_, version) in plan.snapshot.attempts.items()}
    return Changes(
        writes=tuple(
            Write(
                attempt_document(id_),
                versions.get(id_, 0),
                dump_attempt(plan.attempts[id_]),
                expires_ms=ATTEMPT_KEPT_MS,
            )
            for id_ in sorted(plan.attempts_changed)
        )
    )


def _finish(plan: Plan, run: RunRecord) -> tuple[SessionRecord, Changes]:
    """The run leaves its session, the next queued message starts the next run, and a notice is due."""
    session = replace(plan.snapshot.session, active_run=None, stop=None)
    id_, now = document(run.state.run_id), plan.setting.now_ms
    changes = Changes(index=(IndexRemove(ACTIVE_RUNS, id_), IndexPut(RECENT_RUNS, id_, now)))
    if run.origin.channel:
        changes += asking.surface_wanted(_notice(run))
    if session.queue:
        session = replace(session, queue=session.queue[1:])
        message = plan.snapshot.session.queue[0]
        session, _, more = begin(session, message, _spec(plan), length=run.length, now_ms=now)
        changes += more
    write = Write(DocumentId(session.id), plan.snapshot.session_version, dump_session(session))
    return session, changes + Changes(writes=(write,))


def _notice(run: RunRecord) -> SurfaceRecord:
    return SurfaceRecord(
        id=surface_id(run.state.run_id, run.origin.channel, run.origin.target),
        of=run.state.run_id,
        kind="notice",
        channel=run.origin.channel,
        target=run.origin.target,
    )


def _spec(plan: Plan) -> AgentSpec:
    return plan.setting.performer.spec


def _after(plan: Plan, run: RunRecord, session: SessionRecord) -> Snapshot:
    """The records at their versions after the commit, so that the next step need not load them."""
    before = plan.snapshot
    asks = {
        id_: (record, _bump(before.asks.get(id_, (None, 0))[1], id_ in plan.opened or id_ in plan.changed))
        for id_, record in plan.records.items()
    }
    attempts = {
        id_: (record, _bump(before.attempts.get(id_, (None, 0))[1], id_ in plan.attempts_changed))
        for id_, record in plan.attempts.items()
    }
    return Snapshot(
        run=run,
        run_version=_bump(before.run_version, run != before.run),
        session=session,
        session_version=_bump(before.session_version, session != before.session),
        asks=asks,
        attempts=attempts,
    )


def _bump(version: int, written: object) -> int:
    return version + 1 if written else version
