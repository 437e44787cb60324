"""What the journal says: one function for each fact, from the record it is about to the row's bytes.

Owns which of a record's fields stand in a row. Every text of a person or of the agent goes through the redactor;
argument values are in no row, and a digest that hides values is keyed. Pure: the desk, the worker and the publisher
put the rows into their commits. `journal_row.py` has the row, `journal_tail.py` reads.
"""

from __future__ import annotations

import json
from typing import assert_never

from pydantic import JsonValue

from agent.checkin import AnyAsk, CheckIn, OutcomeQuestion, ask_tool
from agent.decision import (
    Answered,
    AnyDecision,
    Approved,
    Assurance,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    InputReceived,
    RunAgain,
    shorten,
)
from agent.ids import AttemptId, RunId
from agent.messages import ResultStatus
from agent.redaction import scrub, secrets
from gateway.ask import AskRecord, AskState, BindingDecision, Edit
from gateway.ids import PersonId
from gateway.journal_row import JournalRow, Kind, dump_row
from gateway.seal import Key, public_digest
from gateway.session import AttemptRecord, RunRecord
from gateway.surface import SurfaceRecord

# --- asks -------------------------------------------------------------------------------------------------------


def asked(record: AskRecord, key: Key) -> bytes:
    return _about(record, Kind.ASK, digest=_digest(record, key), note=_clean(record, record.ask.question))


def decided(record: AskRecord, decided: BindingDecision, key: Key) -> bytes:
    """A person's answer: what it decides, or, while more have to agree, a vote."""
    decision = decided.decision
    kind, code = (Kind.VOTED, "") if record.open else _kind(decision)
    return _about(
        record,
        kind,
        by=decision.by,
        assurance=decision.assurance,
        channel=decided.channel,
        digest=_digest(record, key),
        code=code,
        note=_clean(record, _note(decision)),
        fields=_names(decision),
    )


def edited(record: AskRecord, edit: Edit, key: Key) -> bytes:
    """The record after the edit. Names the arguments that differ, at the top level."""
    return _about(record, Kind.EDITED, by=edit.by, digest=_digest(record, key), fields=_changed(record, edit))


def input_part(record: AskRecord, reply: InputReceived) -> bytes:
    return _about(
        record,
        Kind.INPUT_RECEIVED,
        by=reply.by,
        assurance=reply.assurance,
        code="part",
        fields=tuple(reply.values),
    )


def expired(record: AskRecord) -> bytes:
    return _about(record, Kind.EXPIRED)


def withdrawn(record: AskRecord, by: PersonId) -> bytes:
    """An open ask taken back; or a yes, which is `revoked`. The record after the move."""
    kind = Kind.WITHDRAWN if record.state is AskState.WITHDRAWN else Kind.REVOKED
    return _about(record, kind, by=by)


def superseded(record: AskRecord) -> bytes:
    return _about(record, Kind.SUPERSEDED, note=record.closed_because)


def used(record: AskRecord, attempt: AttemptId, key: Key) -> bytes:
    return _about(record, Kind.USED, attempt=attempt, digest=_digest(record, key))


def refused(
    code: str, *, run: RunRecord, tool: str, ask: AskRecord | None = None, attempt: AttemptId | None = None
) -> bytes:
    """An action that was not executed. `code` is a `RefusalCode`, or another word in capitals."""
    if ask is not None:
        return _about(ask, Kind.REFUSED, code=code, attempt=attempt or "")
    return _of(run, Kind.REFUSED, code=code, tool=tool, attempt=attempt or "")


def answer_refused(record: AskRecord, code: str, *, by: PersonId, channel: str) -> bytes:
    """An answer that was not taken, from a person who may not give it or in a form that is not one."""
    return _about(record, Kind.REFUSED, code=code, by=by, channel=channel)


# --- runs -------------------------------------------------------------------------------------------------------


def run_started(run: RunRecord) -> bytes:
    return _of(run, Kind.RUN_STARTED, by=run.authors[-1] if run.authors else "", channel=run.origin.channel)


def stop_requested(run: RunRecord, by: PersonId) -> bytes:
    return _of(run, Kind.STOP_REQUESTED, by=by)


def run_finished(run: RunRecord) -> bytes:
    """The record with the run's last state."""
    return _of(run, Kind.RUN_FINISHED, code=str(run.state.finish or ""), by=run.state.stopped_by)


# --- executions -------------------------------------------------------------------------------------------------


def executed(attempt: AttemptRecord, status: ResultStatus) -> bytes:
    return _tried(attempt, Kind.EXECUTED, code=str(status))


def executed_late(attempt: AttemptRecord, status: ResultStatus) -> bytes:
    return _tried(attempt, Kind.EXECUTED_LATE, code=str(status))


def outcome_unknown(attempt: AttemptRecord) -> bytes:
    return _tried(attempt, Kind.OUTCOME_UNKNOWN)


# --- deliveries -------------------------------------------------------------------------------------------------


def delivered(surface: SurfaceRecord, run_id: RunId) -> bytes:
    return _sent(surface, run_id, Kind.DELIVERED)


def delivery_failed(surface: SurfaceRecord, run_id: RunId) -> bytes:
    return _sent(surface, run_id, Kind.DELIVERY_FAILED, note=surface.error)


# --- rows -------------------------------------------------------------------------------------------------------


def _about(
    record: AskRecord,
    kind: Kind,
    *,
    by: str = "",
    assurance: Assurance | None = None,
    channel: str = "",
    digest: str = "",
    attempt: str = "",
    code: str = "",
    note: str = "",
    fields: tuple[str, ...] = (),
) -> bytes:
    row = JournalRow(
        kind=kind,
        run_id=record.run_id,
        session_id=record.session_id,
        ask_id=record.id,
        agent=record.agent,
        tool=ask_tool(record.ask),
        by=by,
        assurance=assurance,
        channel=channel,
        revision=record.revision,
        digest=digest,
        attempt=attempt,
        code=code,
        note=note,
        fields=fields,
    )
    return dump_row(row)


def _of(
    run: RunRecord,
    kind: Kind,
    *,
    by: str = "",
    channel: str = "",
    code: str = "",
    tool: str = "",
    attempt: str = "",
) -> bytes:
    row = JournalRow(
        kind=kind,
        run_id=run.state.run_id,
        session_id=run.session_id,
        agent=run.state.agent,
        by=by,
        channel=channel,
        code=code,
        tool=tool,
        attempt=attempt,
    )
    return dump_row(row)


def _tried(attempt: AttemptRecord, kind: Kind, *, code: str = "") -> bytes:
    row = JournalRow(kind=kind, run_id=attempt.run_id, tool=attempt.tool, attempt=attempt.id, code=code)
    return dump_row(row)


def _sent(surface: SurfaceRecord, run_id: RunId, kind: Kind, *, note: str = "") -> bytes:
    row = JournalRow(
        kind=kind,
        run_id=run_id,
        ask_id=surface.of if surface.kind == "ask" else "",
        channel=surface.channel,
        target=surface.target,
        note=shorten(note),
    )
    return dump_row(row)


# --- what may stand in them -------------------------------------------------------------------------------------


def _kind(decision: AnyDecision) -> tuple[Kind, str]:
    match decision:
        case Approved():
            return Kind.APPROVED, ""
        case RunAgain():
            return Kind.APPROVED, "run-again"
        case Declined():
            return Kind.DECLINED, ""
        case Answered():
            return Kind.ANSWERED, ""
        case Happened():
            return Kind.ANSWERED, "happened"
        case GivenUp():
            return Kind.ANSWERED, "given-up"
        case InputReceived():
            return Kind.INPUT_RECEIVED, "complete"
        case InputCancelled():
            return Kind.INPUT_CANCELLED, ""
        case _:
            assert_never(decision)


def _note(decision: AnyDecision) -> str:
    match decision:
        case Answered(answer=answer):
            return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        case InputReceived() | InputCancelled():
            return ""
        case _:
            return decision.note


def _names(decision: AnyDecision) -> tuple[str, ...]:
    return tuple(decision.values) if isinstance(decision, InputReceived) else ()


def _changed(record: AskRecord, edit: Edit) -> tuple[str, ...]:
    before: dict[str, JsonValue] = json.loads(edit.arguments_before)
    after = record.action.arguments if record.action else {}
    return tuple(name for name in {**before, **after} if _differs(before, after, name))


def _differs(before: dict[str, JsonValue], after: dict[str, JsonValue], name: str) -> bool:
    if (name in before) != (name in after):
        return True
    # Compared as JSON: in Python, true would be 1.
    return json.dumps(before[name], sort_keys=True) != json.dumps(after[name], sort_keys=True)


def _redact(ask: AnyAsk) -> tuple[str, ...]:
    return ask.redact if isinstance(ask, CheckIn | OutcomeQuestion) else ()


def _digest(record: AskRecord, key: Key) -> str:
    return public_digest(key, record.digest, hides=bool(_redact(record.ask)))


def _clean(record: AskRecord, text: str) -> str:
    """A text as a row keeps it: without the values that the action hides, and not too long."""
    redact = _redact(record.ask)
    if record.action is not None and redact:
        text = scrub(text, secrets(record.action.arguments, redact))
    return shorten(text)
