"""How an ask may change: a table, and the pure function that applies one move.

Owns `open -> decided | expired | withdrawn | superseded` and the rules of votes. A move that the table does not list
raises, and the record, which is immutable, is as it was. Who may move it is `authority.py`'s, storing it `desk.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from agent.action import Action
from agent.checkin import CheckIn
from agent.decision import Approved, RunAgain
from agent.input_request import InputRequest
from gateway.ask import AskRecord, AskState, BindingDecision, Edit, Outcome, Vote
from gateway.errors import AlreadyDecided
from gateway.ids import PersonId


@dataclass(frozen=True, slots=True)
class Voted:
    """A yes that may not yet be the binding one. `decided` binds when the quorum is reached."""

    vote: Vote
    decided: BindingDecision


@dataclass(frozen=True, slots=True)
class Ruled:
    """An answer that binds by itself: a no, an answer, all values, what happened."""

    decided: BindingDecision


@dataclass(frozen=True, slots=True)
class Edited:
    """Changed arguments: a new revision, without votes. `question` is about what would run now."""

    action: Action
    question: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class Filled:
    """Some of the values that were asked for."""

    request: InputRequest


@dataclass(frozen=True, slots=True)
class Lapsed:
    """The deadline passed."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Withdrew:
    """Whoever asked, or stopped the run, no longer wants it."""

    by: PersonId
    at_ms: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """Nobody needs to answer any more."""

    because: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The approval was used by an attempt."""

    attempt: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """An unspent yes was taken back."""

    by: PersonId
    at_ms: int


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of the call."""

    outcome: Outcome


Move = Voted | Ruled | Edited | Filled | Lapsed | Withdrew | Superseded | Spent | Revoked | Reported

S = AskState
ASK_TABLE: Mapping[AskState, Mapping[type[Move], frozenset[AskState]]] = {
    S.OPEN: {
        Voted: frozenset({S.OPEN, S.DECIDED}),
        Ruled: frozenset({S.DECIDED}),
        Edited: frozenset({S.OPEN}),
        Filled: frozenset({S.OPEN}),
        Lapsed: frozenset({S.EXPIRED}),
        Withdrew: frozenset({S.WITHDRAWN}),
        Superseded: frozenset({S.SUPERSEDED}),
    },
    S.DECIDED: {
        Spent: frozenset({S.DECIDED}),
        Revoked: frozenset({S.DECIDED}),
        Reported: frozenset({S.DECIDED}),
    },
    S.EXPIRED: {},
    S.WITHDRAWN: {},
    S.SUPERSEDED: {},
}
"""Which moves an ask takes in which state, and where each may lead."""


class MoveRefused(AlreadyDecided):
    """The ask is no longer in a state that takes this move. `record` says what it is instead."""

    def __init__(self, record: AskRecord, move: Move) -> None:
        super().__init__(f"an ask that is {record.state} takes no {type(move).__name__}")
        self.record = record


def transition(record: AskRecord, move: Move) -> AskRecord:
    """The record after a move. Raises MoveRefused for one that the table does not list."""
    targets = ASK_TABLE[record.state].get(type(move))
    if targets is None or _spent_already(record, move):
        raise MoveRefused(record, move)
    moved = _apply(record, move)
    if moved.state not in targets:
        raise MoveRefused(record, move)
    return moved


def _spent_already(record: AskRecord, move: Move) -> bool:
    """An approval is spent once and, spent, cannot be taken back; taken back, it cannot be spent."""
    if not isinstance(move, Spent | Revoked):
        return False
    authorizes = isinstance(record.answer, Approved | RunAgain)
    return not authorizes or record.spent_by is not None or record.revoked_by is not None


def _apply(record: AskRecord, move: Move) -> AskRecord:
    match move:
        case Voted(vote=vote, decided=decided):
            return _count(record, vote, decided)
        case Ruled(decided=decided):
            return _close(record, S.DECIDED, decided.at_ms, decided=decided)
        case Edited():
            return _revise(record, move)
        case Filled(request=request):
            return replace(record, ask=request)
        case Lapsed(at_ms=at_ms):
            return _close(record, S.EXPIRED, at_ms)
        case Withdrew(by=by, at_ms=at_ms):
            return replace(_close(record, S.WITHDRAWN, at_ms), closed_by=by)
        case Superseded(because=because, at_ms=at_ms):
            return replace(_close(record, S.SUPERSEDED, at_ms), closed_because=because)
        case Spent(attempt=attempt):
            return replace(record, spent_by=attempt)
        case Revoked(by=by):
            return replace(record, revoked_by=by)
        case Reported(outcome=outcome):
            return replace(record, outcome=outcome)
        case _:
            assert_never(move)


def _count(record: AskRecord, vote: Vote, decided: BindingDecision) -> AskRecord:
    """Add a vote to the current revision. One person's second vote is the same vote; the quorum is of persons."""
    others = tuple(v for v in record.votes if v.by != vote.by and v.revision == record.revision)
    voted = replace(record, votes=(*others, vote))
    if len(voted.votes) < record.quorum:
        return voted
    return _close(voted, S.DECIDED, decided.at_ms, decided=decided)


def _revise(record: AskRecord, move: Edited) -> AskRecord:
    if not isinstance(record.ask, CheckIn):
        return replace(record, state=S.SUPERSEDED)  # not in the table's targets: refused
    changed = replace(record.ask, action=move.action, question=move.question)
    return replace(
        record, ask=changed, revision=record.revision + 1, votes=(), edits=(*record.edits, move.edit)
    )


def _close(
    record: AskRecord, state: AskState, at_ms: int, *, decided: BindingDecision | None = None
) -> AskRecord:
    return replace(record, state=state, closed_at_ms=at_ms, decided=decided)
