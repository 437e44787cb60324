"""The ask's table: every (state, move) pair, and the rules of votes."""

from __future__ import annotations

from typing import Any

import pytest

from agent.action import capture
from agent.decision import Approved, Declined
from gateway.ask import (
    AskRecord,
    AskState,
    BindingDecision,
    Edit,
    Outcome,
    OutcomeKind,
    Vote,
    dump_ask,
    load_ask,
)
from gateway.ids import PersonId
from gateway.lifecycle import (
    ASK_TABLE,
    Edited,
    Filled,
    Lapsed,
    Move,
    MoveRefused,
    Reported,
    Revoked,
    Ruled,
    Spent,
    Superseded,
    Voted,
    Withdrew,
    transition,
)
from tests.support.asks import ask_record, input_request

ANN, BOB = PersonId("ann"), PersonId("bob")


def record(**changes: Any) -> AskRecord:
    return ask_record(**changes)


def approval(by: str = "ann", *, revision: int = 1) -> BindingDecision:
    return BindingDecision(
        decision=Approved(by=by), at_ms=2, channel="test", revision=revision, digest="d", seal="s"
    )


def voted(by: PersonId = ANN, *, revision: int = 1) -> Voted:
    return Voted(Vote(by, revision, 2, "test"), approval(by, revision=revision))


def ruled() -> Ruled:
    decision = Declined(by="ann")
    return Ruled(
        BindingDecision(decision=decision, at_ms=2, channel="test", revision=1, digest="d", seal="s")
    )


def edited() -> Edited:
    action = capture(tenant="default", tool="refund", schema_hash="h", arguments={"amount": 1})
    return Edited(action, "Refund 1?", Edit(ANN, 2, "{}"))


def every_move(at: AskRecord) -> dict[type[Move], Move]:
    return {
        Voted: voted(),
        Ruled: ruled(),
        Edited: edited(),
        Filled: Filled(input_request()),
        Lapsed: Lapsed(2),
        Withdrew: Withdrew(ANN, 2),
        Superseded: Superseded("over", 2),
        Spent: Spent("attempt", 2),
        Revoked: Revoked(ANN, 2),
        Reported: Reported(Outcome(OutcomeKind.DONE, 2)),
    }


def in_state(state: AskState) -> AskRecord:
    move: Move | None = {
        AskState.OPEN: None,
        AskState.DECIDED: voted(),
        AskState.EXPIRED: Lapsed(2),
        AskState.WITHDRAWN: Withdrew(ANN, 2),
        AskState.SUPERSEDED: Superseded("over", 2),
    }[state]
    return transition(record(), move) if move else record()


@pytest.mark.parametrize("state", list(AskState))
def test_an_ask_takes_exactly_the_moves_of_its_table(state: AskState) -> None:
    at = in_state(state)
    assert at.state is state
    for type_, move in every_move(at).items():
        if type_ in ASK_TABLE[state]:
            assert transition(at, move).state in ASK_TABLE[state][type_], f"{state} + {type_.__name__}"
        else:
            with pytest.raises(MoveRefused):
                transition(at, move)


def test_every_move_is_in_the_table() -> None:
    assert set(every_move(record())) == {type_ for row in ASK_TABLE.values() for type_ in row}


def test_a_quorum_counts_persons() -> None:
    once = transition(record(quorum=2), voted(ANN))
    assert once.open
    assert transition(once, voted(ANN)).open, "one person's second vote is the same vote"
    assert transition(once, voted(BOB)).state is AskState.DECIDED


def test_one_no_closes_whatever_was_voted() -> None:
    once = transition(record(quorum=2), voted(ANN))
    assert transition(once, ruled()).state is AskState.DECIDED


def test_an_edit_is_a_new_revision_without_votes() -> None:
    once = transition(record(quorum=2), voted(ANN))
    changed = transition(once, edited())
    assert (changed.revision, changed.votes) == (2, ())
    assert changed.ask.question == "Refund 1?"
    again = transition(changed, voted(BOB, revision=2))
    assert again.open, "a vote for the revision before does not count"


def test_an_approval_is_spent_once_and_then_cannot_be_taken_back() -> None:
    spent = transition(in_state(AskState.DECIDED), Spent("one", 3))
    for move in (Spent("two", 4), Revoked(ANN, 4)):
        with pytest.raises(MoveRefused):
            transition(spent, move)


def test_a_revoked_approval_cannot_be_spent() -> None:
    revoked = transition(in_state(AskState.DECIDED), Revoked(ANN, 3))
    with pytest.raises(MoveRefused):
        transition(revoked, Spent("one", 4))


def test_a_no_can_be_neither_spent_nor_revoked() -> None:
    declined = transition(record(), ruled())
    for move in (Spent("one", 3), Revoked(ANN, 3)):
        with pytest.raises(MoveRefused):
            transition(declined, move)


@pytest.mark.parametrize("state", list(AskState))
def test_a_record_survives_its_json(state: AskState) -> None:
    at = in_state(state)
    assert load_ask(dump_ask(at)) == at
