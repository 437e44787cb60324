"""A row's JSON form, and that its kinds are what the documentation says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decision import Assurance
from gateway.journal_row import MEANINGS, ROW_SCHEMA, JournalRow, Kind, UnreadableRow, dump_row, load_row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "journal.md"

FULL = JournalRow(
    kind=Kind.DECLINED,
    run_id="run_07_9F2C",
    session_id="s_07_A",
    ask_id="a_07_K3T9",
    agent="refunds",
    tool="issue_refund",
    by="bob",
    assurance=Assurance.DELEGATED,
    channel="console",
    target="tty-1",
    revision=2,
    digest="3f9a",
    attempt="run_07_9F2C:1-0:1",
    code="x",
    note="not this week",
    fields=("amount",),
    relayed=True,
)


class TestJson:
    @pytest.mark.parametrize("row", [FULL, JournalRow(kind=Kind.ASK), JournalRow(kind="from-the-future")])
    def test_is_read_back_as_it_was(self, row: JournalRow):
        assert load_row(dump_row(row)) == row

    def test_always_says_its_schema_and_its_kind_and_leaves_out_what_is_empty(self):
        assert json.loads(dump_row(JournalRow(kind=Kind.ASK))) == {"schema": ROW_SCHEMA, "kind": "ask"}

    def test_an_unknown_kind_is_readable_as_it_is_called(self):
        row = load_row(b'{"schema":2,"kind":"sealed","by":"ann","seal":"3f9a"}')
        assert (row.kind, row.by, row.known) == ("sealed", "ann", False)

    def test_a_known_kind_is_a_kind(self):
        assert load_row(b'{"schema":1,"kind":"always-approved"}').kind is Kind.ALWAYS_APPROVED

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"{}", b'{"kind":3}', b"\xff", b'{"kind":"ask","revision":"one"}']
    )
    def test_anything_else_is_refused(self, body: bytes):
        with pytest.raises(UnreadableRow, match="not a row of the journal"):
            load_row(body)

    @given(note=st.text(), by=st.text())
    def test_any_text_can_be_kept(self, note: str, by: str):
        row = JournalRow(kind=Kind.ASK, note=note, by=by)
        assert load_row(dump_row(row)) == row

    def test_a_row_of_the_first_schema_stays_readable(self):
        body = b'{"schema":1,"kind":"approved","run_id":"run_07_9","ask_id":"a_07_K","by":"ann","assurance":"person"}'
        row = load_row(body)
        assert row == JournalRow(
            kind=Kind.APPROVED, run_id="run_07_9", ask_id="a_07_K", by="ann", assurance=Assurance.PERSON
        )


class TestKinds:
    def test_each_has_a_meaning(self):
        assert set(MEANINGS) == set(Kind)

    def test_the_documentation_says_what_the_code_says(self):
        written = dict(
            re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        )
        assert written == {str(kind): text for kind, text in MEANINGS.items()}, (
            f"bring the table in {PAGE} up to date"
        )

    def test_none_was_renamed(self):
        """Rows that are stored keep their kind for ever: add to this list, take nothing from it."""
        assert {str(kind) for kind in Kind} >= {
            "ask", "approved", "always-approved", "declined", "used", "refused", "revoked",
            "run-started", "run-finished", "executed", "executed-late", "outcome-unknown", "delivered",
            "delivery-failed", "expired", "answered", "input-received", "input-cancelled", "withdrawn", "edited",
            "voted", "superseded", "stop-requested",
        }  # fmt: skip
