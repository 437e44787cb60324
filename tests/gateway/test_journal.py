"""What each fact becomes in the journal, and what never gets there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import JsonValue

from agent.action import capture
from agent.checkin import AnyAsk
from agent.decision import (
    CUT_MARK,
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
)
from agent.ids import AttemptId, RunId
from agent.messages import ResultStatus
from agent.run import FinishReason
from gateway import journal
from gateway.ask import AskState, Edit
from gateway.ids import PersonId, SurfaceId
from gateway.journal_row import JournalRow, Kind, load_row
from gateway.lifecycle import Edited, transition
from gateway.ports import DocumentId
from gateway.surface import SurfaceRecord
from tests.support.asks import (
    ASK,
    KEY,
    RUN,
    SESSION,
    action,
    ask_record,
    attempt_record,
    binding,
    check_in,
    input_request,
    outcome_question,
    question,
    run_record,
)

ANN = PersonId("ann")
CANARY = "canary-7f3a-secret"


def surface(kind: str = "ask", error: str = "") -> SurfaceRecord:
    return SurfaceRecord(
        id=SurfaceId(DocumentId("sf_07_A")),
        of=ASK if kind == "ask" else RUN,
        kind="ask" if kind == "ask" else "notice",
        channel="console",
        target="tty-1",
        error=error,
    )


class TestAsks:
    def test_an_ask_says_what_was_asked_about_what(self):
        row = load_row(journal.asked(ask_record(), KEY))
        assert row == JournalRow(
            kind=Kind.ASK,
            run_id=RUN,
            session_id=SESSION,
            ask_id=ASK,
            agent="refunds",
            tool="issue_refund",
            revision=1,
            digest=action().digest,
            note="Refund 5000 USD on order A-1042?",
        )

    @pytest.mark.parametrize(
        ("ask", "tool"),
        [(question(), "ask_user"), (input_request(), "collect"), (outcome_question(), "issue_refund")],
    )
    def test_every_kind_of_ask_has_its_row(self, ask: AnyAsk, tool: str):
        row = load_row(journal.asked(ask_record(ask), KEY))
        assert (row.kind, row.tool) == (Kind.ASK, tool)

    @pytest.mark.parametrize(
        ("ask", "decision", "kind", "code", "note", "fields"),
        [
            (check_in(), Approved(by="ann", note="ok"), Kind.APPROVED, "", "ok", ()),
            (check_in(), Declined(by="ann", note="no"), Kind.DECLINED, "", "no", ()),
            (question(), Answered(by="ann", answer="A-1042"), Kind.ANSWERED, "", "A-1042", ()),
            (question(), Answered(by="ann", answer={"a": 1}), Kind.ANSWERED, "", '{"a": 1}', ()),
            (
                input_request(),
                InputReceived(by="ann", request_id="in-1", values={"due": "tomorrow", "amount": 3}),
                Kind.INPUT_RECEIVED,
                "complete",
                "",
                ("due", "amount"),
            ),
            (input_request(), InputCancelled(by="ann", request_id="in-1"), Kind.INPUT_CANCELLED, "", "", ()),
            (
                outcome_question(),
                Happened(by="ann", note="I looked"),
                Kind.ANSWERED,
                "happened",
                "I looked",
                (),
            ),
            (outcome_question(), RunAgain(by="ann"), Kind.APPROVED, "run-again", "", ()),
            (outcome_question(), GivenUp(by="ann"), Kind.ANSWERED, "given-up", "", ()),
        ],
    )
    def test_a_decision_says_who_where_and_how_sure(
        self, ask: AnyAsk, decision: AnyDecision, kind: Kind, code: str, note: str, fields: tuple[str, ...]
    ):
        record = ask_record(ask, state=AskState.DECIDED)
        row = load_row(journal.decided(record, binding(decision, record), KEY))
        assert (row.kind, row.code, row.note, row.fields) == (kind, code, note, fields)
        assert (row.by, row.assurance, row.channel, row.revision) == ("ann", Assurance.PERSON, "console", 1)

    def test_a_yes_that_does_not_bind_yet_is_a_vote(self):
        record = ask_record(quorum=2)
        assert load_row(journal.decided(record, binding(Approved(by="ann")), KEY)).kind is Kind.VOTED

    def test_an_operators_decision_is_journaled_as_such(self):
        decision = Declined(by="ann", assurance=Assurance.OPERATOR)
        row = load_row(journal.decided(ask_record(state=AskState.DECIDED), binding(decision), KEY))
        assert row.assurance is Assurance.OPERATOR

    def test_an_edit_names_what_differs_and_no_values(self):
        record = ask_record()
        after: dict[str, JsonValue] = {"order_id": "A-1042", "amount": 4200, "note": "cap"}
        edit = Edit(ANN, 1_500, action().arguments_json)
        edited = transition(record, Edited(action(after), "Run it?", edit))
        row = load_row(journal.edited(edited, edit, KEY))
        assert (row.kind, row.by, row.revision) == (Kind.EDITED, "ann", 2)
        assert set(row.fields) == {"amount", "currency", "note"}
        assert row.digest == action(after).digest
        assert b"4200" not in journal.edited(edited, edit, KEY)

    def test_true_and_one_differ_in_an_edit(self):
        before = capture(tenant="default", tool="t", schema_hash="h", arguments={"a": 1, "b": 1})
        edit = Edit(ANN, 1_500, before.arguments_json)
        edited = ask_record(check_in({"a": True, "b": 1.0}))
        assert load_row(journal.edited(edited, edit, KEY)).fields == ("a",)

    def test_part_of_the_values(self):
        reply = InputReceived(by="ann", request_id="in-1", values={"due": "tomorrow"})
        row = load_row(journal.input_part(ask_record(input_request()), reply))
        assert (row.kind, row.code, row.fields, row.by) == (Kind.INPUT_RECEIVED, "part", ("due",), "ann")

    def test_values_of_an_input_request_are_in_no_row(self):
        reply = InputReceived(by="ann", request_id="in-1", values={"due": CANARY})
        record = ask_record(input_request(), state=AskState.DECIDED)
        rows = (journal.input_part(record, reply), journal.decided(record, binding(reply, record), KEY))
        assert not any(CANARY.encode() in row for row in rows)

    def test_endings_without_a_decision(self):
        assert load_row(journal.expired(ask_record(state=AskState.EXPIRED))).kind is Kind.EXPIRED
        because = "another step of this run was declined"
        row = load_row(journal.superseded(ask_record(state=AskState.SUPERSEDED, closed_because=because)))
        assert (row.kind, row.note) == (Kind.SUPERSEDED, because)

    @pytest.mark.parametrize(
        ("state", "kind"), [(AskState.WITHDRAWN, Kind.WITHDRAWN), (AskState.DECIDED, Kind.REVOKED)]
    )
    def test_taking_back_an_ask_and_a_yes_are_two_things(self, state: AskState, kind: Kind):
        row = load_row(journal.withdrawn(ask_record(state=state), ANN))
        assert (row.kind, row.by) == (kind, "ann")

    def test_a_use_names_its_attempt(self):
        row = load_row(journal.used(ask_record(), AttemptId(f"{RUN}:1-0:1"), KEY))
        assert (row.kind, row.attempt, row.digest) == (Kind.USED, f"{RUN}:1-0:1", action().digest)

    def test_a_refusal_says_why(self):
        run, attempt = run_record(), AttemptId(f"{RUN}:1-0:1")
        row = load_row(
            journal.refused("APPROVAL_SPENT", run=run, tool="issue_refund", ask=ask_record(), attempt=attempt)
        )
        assert (row.kind, row.code, row.ask_id, row.attempt) == (Kind.REFUSED, "APPROVAL_SPENT", ASK, attempt)
        row = load_row(journal.refused("APPROVAL_REQUIRED", run=run, tool="issue_refund"))
        assert (row.kind, row.tool, row.run_id, row.ask_id) == (Kind.REFUSED, "issue_refund", RUN, "")

    def test_a_refused_answer_names_who_tried(self):
        row = load_row(
            journal.answer_refused(ask_record(), "NOT_ALLOWED", by=PersonId("zoe"), channel="console")
        )
        assert (row.kind, row.code, row.by, row.channel) == (Kind.REFUSED, "NOT_ALLOWED", "zoe", "console")


class TestHidden:
    """A redacted value is in no row, wherever it was repeated."""

    ARGUMENTS: dict[str, JsonValue] = {"order_id": "A-1042", "payment": {"token": CANARY}}  # noqa: RUF012
    ASKED = check_in(ARGUMENTS, question=f"Pay with {CANARY}?", redact=("payment.token",))

    def test_values_are_scrubbed_from_questions_and_notes(self):
        record = ask_record(self.ASKED, state=AskState.DECIDED)
        approved = binding(Approved(by="ann", note=f"the card {CANARY} is fine"), record)
        rows = (
            journal.asked(record, KEY),
            journal.decided(record, approved, KEY),
            journal.edited(record, Edit(ANN, 1, action().arguments_json), KEY),
            journal.used(record, AttemptId("x"), KEY),
            journal.withdrawn(record, ANN),
        )
        assert not any(CANARY.encode() in row for row in rows)
        assert load_row(rows[0]).note == "Pay with [REDACTED]?"

    def test_the_digest_is_keyed_because_a_short_secret_could_be_guessed_from_it(self):
        record = ask_record(self.ASKED)
        row = load_row(journal.asked(record, KEY))
        assert row.digest
        assert record.digest.encode() not in journal.asked(record, KEY)
        assert row.digest == load_row(journal.used(record, AttemptId("x"), KEY)).digest

    def test_long_notes_are_cut(self):
        record = ask_record(question("a" * 5_000))
        assert load_row(journal.asked(record, KEY)).note == "a" * 500 + CUT_MARK


class TestRuns:
    def test_a_run_begins_stops_and_ends(self):
        row = load_row(journal.run_started(run_record()))
        assert (row.kind, row.by, row.agent, row.run_id, row.session_id) == (
            Kind.RUN_STARTED, "mia", "refunds", RUN, SESSION,
        )  # fmt: skip
        row = load_row(journal.stop_requested(run_record(), ANN))
        assert (row.kind, row.by) == (Kind.STOP_REQUESTED, "ann")
        row = load_row(journal.run_finished(run_record(finish=FinishReason.CANCELLED, stopped_by="ann")))
        assert (row.kind, row.code, row.by) == (Kind.RUN_FINISHED, "cancelled", "ann")

    def test_a_run_without_a_known_author_has_none(self):
        assert load_row(journal.run_started(replace(run_record(), authors=()))).by == ""

    def test_what_the_model_said_and_why_it_failed_are_not_in_the_row(self):
        run = run_record(finish=FinishReason.FAILED, text=CANARY, detail=CANARY, request=CANARY)
        assert CANARY.encode() not in journal.run_finished(run)


class TestExecutions:
    def test_each_names_tool_and_attempt(self):
        attempt = attempt_record()
        row = load_row(journal.executed(attempt, ResultStatus.ERROR))
        assert (row.kind, row.code, row.tool, row.attempt, row.run_id) == (
            Kind.EXECUTED, "error", "issue_refund", attempt.id, RUN,
        )  # fmt: skip
        assert load_row(journal.executed_late(attempt, ResultStatus.OK)).kind is Kind.EXECUTED_LATE
        assert load_row(journal.outcome_unknown(attempt)).kind is Kind.OUTCOME_UNKNOWN

    def test_a_result_is_not_in_the_row(self):
        attempt = replace(attempt_record(), content=CANARY)
        assert CANARY.encode() not in journal.executed(attempt, ResultStatus.OK)


class TestDeliveries:
    def test_each_names_where(self):
        row = load_row(journal.delivered(surface(), RunId(RUN)))
        assert (row.kind, row.ask_id, row.channel, row.target) == (Kind.DELIVERED, ASK, "console", "tty-1")

    def test_a_notice_is_about_its_run(self):
        row = load_row(journal.delivered(surface("notice"), RunId(RUN)))
        assert (row.run_id, row.ask_id) == (RUN, "")

    def test_a_failure_says_why(self):
        row = load_row(journal.delivery_failed(surface(error="channel archived"), RunId(RUN)))
        assert (row.kind, row.note) == (Kind.DELIVERY_FAILED, "channel archived")
