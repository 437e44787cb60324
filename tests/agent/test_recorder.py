"""Events carry what happened and cannot be changed; the recorder keeps and counts them."""

import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any, cast, get_args

import pytest

from agent.action import capture
from agent.checkin import CheckIn, Component
from agent.decision import Approved, Assurance, Declined
from agent.events import AnyEvent, CallDenied, CheckInDecided, CheckInRequested, RunFinished, ToolExecuted
from agent.ids import AskKey
from agent.recorder import CheckInRecorder, CheckInStats


def check_in(key: str = "1-0-1", **other: Any) -> CheckIn:
    action = capture(
        tenant="t", tool="pay", schema_hash="h", arguments={"sum": 5000, "card": {"number": "4111"}}
    )
    ask = CheckIn(
        key=AskKey(key),
        call_id="c1",
        action=action,
        question="Pay 5000?",
        intent="It is due.",
        reasons=("large payments",),
        evidence={"will_do": "Pay", "read": [{"channel": "task", "summary": "pay it"}]},
        component=Component("approve-panel", {"tone": "serious"}),
        redact=("card.number",),
    )
    return replace(ask, **other)


def requested(key: str = "1-0-1", run_id: str = "r1") -> CheckInRequested:
    return CheckInRequested.of(run_id, check_in(key))


def decided(decision: Approved | Declined, key: str = "1-0-1", run_id: str = "r1") -> CheckInDecided:
    return CheckInDecided.of(run_id, check_in(key), decision)


class TestEvents:
    def test_a_request_tells_what_was_asked_without_secrets(self):
        event = requested()
        assert (event.name, event.run_id, event.call_id, event.tool) == ("checkin.request", "r1", "c1", "pay")
        assert (event.question, event.reasons, event.component_id) == (
            "Pay 5000?",
            ("large payments",),
            "approve-panel",
        )
        assert event.arguments == {"sum": 5000, "card": {"number": "[REDACTED]"}}
        assert "4111" not in repr(event)

    def test_a_decision_tells_who_decided_what_where(self):
        event = decided(Approved(by="Ann", note="ok", arguments={"sum": 1}, assurance=Assurance.OPERATOR))
        assert event == CheckInDecided(
            run_id="r1",
            call_id="c1",
            tool="pay",
            ask_key="1-0-1",
            approved=True,
            by="Ann",
            note="ok",
            assurance=Assurance.OPERATOR,
            edited=True,
            component_id="approve-panel",
        )
        assert not decided(Declined(by="Bob")).approved
        assert not decided(Approved(by="Bob")).edited

    def test_a_long_note_is_kept_as_it_is_kept_elsewhere(self):
        assert decided(Declined(by="Bob", note="x" * 600)).note.endswith("… (cut at 500 characters)")

    def test_an_edit_to_nothing_is_an_edit(self):
        assert decided(Approved(by="Ann", arguments={})).edited

    def test_nothing_a_listener_does_reaches_another(self):
        event = requested()
        event.arguments["sum"] = 1
        cast(list[Any], event.evidence["read"]).clear()
        assert event.arguments["sum"] == 5000
        assert len(cast(list[Any], event.evidence["read"])) == 1
        with pytest.raises(FrozenInstanceError):
            event.tool = "other"  # pyright: ignore[reportAttributeAccessIssue]

    def test_nothing_the_asker_does_later_reaches_the_event(self):
        ask = check_in()
        event = CheckInRequested.of("r1", ask)
        ask.evidence.clear()
        assert event.evidence["will_do"] == "Pay"

    def test_every_event_has_a_name_of_its_own_and_no_nested_data_that_could_change(self):
        names = {kind.__dataclass_fields__["name"].default for kind in get_args(AnyEvent)}
        assert len(names) == len(get_args(AnyEvent))
        for kind in get_args(AnyEvent):
            mutable = [
                each.name for each in fields(kind) if str(each.type).startswith(("dict", "list", "set"))
            ]
            assert not mutable, f"{kind.__name__} holds {mutable}"

    def test_the_json_of_an_event_is_readable(self):
        assert json.loads(requested().evidence_json)["will_do"] == "Pay"


class TestRecorder:
    def test_keeps_requests_and_decisions_in_order(self):
        audit = CheckInRecorder()
        first, second = requested("1-0-1"), requested("1-1-1")
        yes, no = decided(Approved(by="Ann"), "1-1-1"), decided(Declined(by="Bob"), "1-0-1")
        for event in (first, second, yes, no):
            audit(event)
        assert audit.requests() == (first, second)
        assert audit.decisions() == (yes, no)

    def test_counts(self):
        audit = CheckInRecorder()
        for key in ("1-0-1", "1-1-1", "1-2-1", "1-3-1"):
            audit(requested(key))
        audit(decided(Approved(by="Ann"), "1-0-1"))
        audit(decided(Approved(by="Ann", arguments={"sum": 1}), "1-1-1"))
        audit(decided(Declined(by="Bob"), "1-2-1"))
        assert audit.stats() == CheckInStats(requests=4, approved=2, declined=1, edited=1, pending=1)

    def test_what_nobody_decided_before_the_run_ended_is_no_longer_pending(self):
        audit = CheckInRecorder()
        audit(requested(run_id="r1"))
        audit(requested(run_id="r2"))
        audit(RunFinished(run_id="r1", reason="expired"))
        assert audit.stats().pending == 1

    def test_a_decision_in_another_process_than_the_request_is_kept(self):
        audit = CheckInRecorder()
        audit(decided(Approved(by="Ann")))
        assert audit.stats() == CheckInStats(requests=0, approved=1, declined=0, edited=0, pending=0)

    def test_ignores_every_other_event(self):
        audit = CheckInRecorder()
        audit(ToolExecuted(run_id="r1", call_id="c1", tool="pay"))
        audit(CallDenied(run_id="r1", call_id="c1", tool="pay", by="policy"))
        audit("anything")
        assert audit.stats() == CheckInStats(requests=0, approved=0, declined=0, edited=0, pending=0)

    def test_what_it_returned_stays_as_it_was(self):
        audit = CheckInRecorder()
        before = audit.requests()
        audit(requested())
        assert before == ()
