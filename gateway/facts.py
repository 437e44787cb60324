"""What the store says that a run does not know yet, as the next event for its loop.

Pure. The order is the point: a stop before everything, results before answers, a no before a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from agent.checkin import CheckIn
from agent.decision import Declined, InputReceived
from agent.ids import AskKey, AttemptId
from agent.moves import (
    AnswerReceived,
    Decided,
    Event,
    Expired,
    OutcomeUnknown,
    Settled,
    StopRequested,
    Withdrawn,
)
from agent.run import Call, CallPhase, Phase, RunState
from gateway.ask import AskRecord, AskState
from gateway.ids import AskId
from gateway.session import AttemptRecord, AttemptState, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A run's state beside what is stored about it. `live`: calls whose tool runs in this process, for this claim."""

    state: RunState
    stop: Stop | None
    asks: Mapping[AskKey, AskId]
    records: Mapping[AskId, AskRecord]
    attempts: Mapping[AttemptId, AttemptRecord]
    live: Collection[str]
    idempotent: Callable[[str], bool]
    gone: Callable[[str], bool]
    """Whether the process that started an attempt is surely gone."""


def next_event(facts: Facts) -> Event | None:
    """The next thing that the run has to be told; None when it knows everything."""
    if facts.state.phase not in (Phase.THINKING, Phase.JUDGING, Phase.ACTING, Phase.CLOSING):
        return None
    if facts.stop is not None and not facts.state.stopped_by:
        return StopRequested(by=facts.stop.by)
    return _result(facts) or _answer(facts)


def _result(facts: Facts) -> Event | None:
    for call in facts.state.in_phase(CallPhase.RUNNING, CallPhase.UNKNOWN):
        attempt = call.attempt
        if attempt is None or call.id in facts.live:
            continue
        record = facts.attempts.get(attempt.id)
        if record is not None and record.state is AttemptState.SETTLED:
            return Settled(
                call_id=call.id, attempt_id=attempt.id, content=record.content, status=record.status
            )
        if call.phase is CallPhase.RUNNING:
            gone = record is None or facts.gone(record.instance)
            return OutcomeUnknown(
                call_id=call.id, attempt_id=attempt.id, idempotent=facts.idempotent(call.tool), safe=gone
            )
    return None


def _answer(facts: Facts) -> Event | None:
    closed = [
        (call, record)
        for call in facts.state.calls
        if (record := _record(facts, call)) is not None and not record.open
    ]
    closed.sort(key=lambda pair: not isinstance(pair[1].answer, Declined))
    return _told(*closed[0]) if closed else None


def _record(facts: Facts, call: Call) -> AskRecord | None:
    if call.ask_key is None or call.ask_key not in facts.asks:
        return None
    return facts.records.get(facts.asks[call.ask_key])


def _told(call: Call, record: AskRecord) -> Event:
    """A closed ask as the event that its call waits for."""
    key = AskKey(record.ask.key)
    if record.state is AskState.EXPIRED:
        return Expired(call_id=call.id, ask_key=key)
    decision = record.answer
    if decision is None or record.revoked_by is not None:
        return Withdrawn(call_id=call.id, ask_key=key)
    if isinstance(decision, InputReceived):
        return AnswerReceived(call_id=call.id, ask_key=key, reply=decision)
    if record.edits and isinstance(record.ask, CheckIn):
        action, sentence = record.ask.action, record.ask.question
        return Decided(call_id=call.id, ask_key=key, decision=decision, action=action, sentence=sentence)
    return Decided(call_id=call.id, ask_key=key, decision=decision)
