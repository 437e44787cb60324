"""The seal covers all of a decision, and survives the way through the store."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent.decision import (
    Answered,
    AnyDecision,
    Approved,
    Assurance,
    Declined,
    Happened,
    InputReceived,
    RunAgain,
)
from gateway.ask import BindingDecision, dump_ask, load_ask
from gateway.ids import AskId
from gateway.ports import DocumentId
from gateway.seal import Key, check, public_digest, seal
from tests.support.asks import ASK, KEY, ask_record, binding

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


class TestCheck:
    @pytest.mark.parametrize(
        "decision",
        [
            Approved(by="ann"),
            Approved(by="ann", note="fine", arguments={"amount": 4200}),
            Approved(by="ann", arguments={}),
            Declined(by="bob", note="not this week"),
            Answered(by="ann", answer={"order": [1, 2.5, None, True]}),
            InputReceived(by="ann", request_id="in-1", values={"due": "2026-12-01"}),
            Happened(by="ann"),
            RunAgain(by="ann", assurance=Assurance.OPERATOR),
        ],
    )
    def test_what_was_sealed_passes(self, decision: AnyDecision):
        assert check(KEY, binding(decision), ask_id=ASK)

    @pytest.mark.parametrize(
        "changed",
        [
            replace(binding(Approved(by="ann")), decision=Approved(by="mallory")),
            replace(binding(Approved(by="ann")), decision=Declined(by="ann")),
            replace(binding(Declined(by="ann")), decision=Approved(by="ann")),
            replace(binding(Approved(by="ann")), decision=Approved(by="ann", note="more")),
            replace(binding(Approved(by="ann")), decision=Approved(by="ann", arguments={})),
            replace(binding(Approved(by="ann")), decision=Approved(by="ann", assurance=Assurance.OPERATOR)),
            replace(binding(Answered(by="ann", answer=True)), decision=Answered(by="ann", answer=1)),
            replace(binding(Answered(by="ann", answer="1")), decision=Answered(by="ann", answer=1)),
            replace(binding(Approved(by="ann")), revision=2),
            replace(binding(Approved(by="ann")), digest="0" * 64),
            replace(binding(Approved(by="ann")), seal=""),
            replace(binding(Approved(by="ann")), seal="ünfit\ud800"),
            replace(binding(Approved(by="ann")), seal=binding(Approved(by="ann")).seal.upper()),
        ],
    )
    def test_anything_changed_does_not(self, changed: BindingDecision):
        assert not check(KEY, changed, ask_id=ASK)

    def test_neither_does_it_with_another_ask_or_another_key(self):
        decided = binding(Approved(by="ann"))
        assert not check(KEY, decided, ask_id=AskId(DocumentId("a_07_OTHER")))
        assert not check(Key(b"another key that is long enough, too"), decided, ask_id=ASK)

    @given(answer=json_values)
    def test_a_sealed_answer_passes_after_the_store(self, answer: JsonValue):
        record = ask_record()
        stored = load_ask(
            dump_ask(replace(record, decided=binding(Answered(by="ann", answer=answer), record)))
        )
        assert stored.decided is not None
        assert check(KEY, stored.decided, ask_id=ASK), f"sealed {answer!r}, read back {stored.answer!r}"


class TestPublicDigest:
    def test_is_the_digest_where_nothing_is_hidden(self):
        assert public_digest(KEY, "3f9a", hides=False) == "3f9a"

    def test_is_keyed_where_something_is(self):
        keyed = public_digest(KEY, "3f9a", hides=True)
        assert len(keyed) == 64
        assert keyed != public_digest(Key(b"another key that is long enough, too"), "3f9a", hides=True)

    def test_of_nothing_is_nothing(self):
        assert public_digest(KEY, "", hides=True) == ""


def test_a_seal_of_an_earlier_version_is_recognized():
    """Made by the first version. If this fails, decisions that wait in stores would no longer be executed."""
    sealed = seal(
        Key(b"0123456789abcdef0123456789abcdef"),
        ask_id=ASK,
        revision=1,
        digest="3f9a",
        decision=Approved(by="ann", note="ok"),
    )
    assert sealed == "ee8707949d1c7198c88cf21f6a4e0ea6c8e34acc18163a9267f68080c3e5a8ca"
