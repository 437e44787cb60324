"""The notice at the end of a run: what became of it, in one or two sentences, for whoever asked.

Owns how each terminal outcome is told. Pure. There is one notice for every end and none for a pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.decision import Declined
from agent.ids import RunId
from agent.run import FinishReason
from gateway.ask import AskRecord
from gateway.ids import PersonId
from gateway.session import RunRecord
from gateway.texts import text
from gateway.view import Names
from gateway.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNotice:
    run_id: RunId
    agent: str
    reason: FinishReason
    line: str


def notice_of(run: RunRecord, asks: Sequence[AskRecord], names: Names) -> RunNotice:
    """What to tell of a finished run; `asks` are its latest."""
    reason = run.state.finish or FinishReason.FAILED
    return RunNotice(
        run_id=run.state.run_id, agent=run.state.agent, reason=reason, line=_line(reason, run, asks, names)
    )


_FIXED = {
    FinishReason.HALTED: "ended-halted",
    FinishReason.EXPIRED: "ended-expired",
    FinishReason.REFUSED: "ended-refused",
    FinishReason.TRUNCATED: "ended-truncated",
    FinishReason.CONTEXT_FULL: "ended-context",
}


def _line(reason: FinishReason, run: RunRecord, asks: Sequence[AskRecord], names: Names) -> str:
    if reason in _FIXED:
        return text(_FIXED[reason])
    match reason:
        case FinishReason.MAX_TURNS:
            return text("ended-max-turns", turns=run.state.turn)
        case FinishReason.CANCELLED:
            return _cancelled(run, names)
        case FinishReason.DENIED:
            return text("ended-denied", reason=_who_declined(asks, names))
        case FinishReason.FAILED:
            return text("ended-failed", ref=run.state.run_id)
        case _:
            return visible(run.state.text) or text("ended-empty")


def _cancelled(run: RunRecord, names: Names) -> str:
    if not run.state.stopped_by:
        return text("ended-cancelled-alone")
    return text("ended-cancelled", name="".join(names.names([PersonId(run.state.stopped_by)])))


def _who_declined(asks: Sequence[AskRecord], names: Names) -> str:
    declined = [ask.answer for ask in asks if isinstance(ask.answer, Declined)]
    if not declined:
        return "A rule does not allow it."
    decision = declined[-1]
    name = "".join(names.names([PersonId(decision.by)]))
    if decision.note:
        return text("declined-by-note", name=name, note=visible(decision.note))
    return text("declined-by", name=name)
