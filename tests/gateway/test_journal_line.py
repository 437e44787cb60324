"""A row as a line for a terminal: complete, in order, and harmless whatever people and models wrote."""

from __future__ import annotations

import unicodedata
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decision import Assurance
from gateway.journal_line import line
from gateway.journal_row import JournalRow, Kind
from gateway.journal_tail import Entry

AT_MS = 1_791_342_729_000
"""2026-10-07 03:12:09 UTC"""


def shown(row: JournalRow) -> str:
    return line(Entry(7, 12, AT_MS, row))


def test_a_decision_in_full():
    row = JournalRow(
        kind=Kind.APPROVED,
        run_id="run_07_9F2C",
        ask_id="a_07_K3T9",
        agent="refunds",
        tool="issue_refund",
        by="ann",
        assurance=Assurance.PERSON,
        channel="console",
        target="tty-1",
        revision=2,
        digest="3f9a1b2c4d5e",
        code="run-again",
        note="cap until Monday",
        fields=("amount", "currency"),
    )
    assert shown(row) == (
        "2026-10-07 03:12:09 07/12 approved        issue_refund a_07_K3T9 revision 2 run-again [amount, currency]"
        ' by ann (console tty-1) digest 3f9a1b2c "cap until Monday"'
    )


def test_a_run_without_an_ask_goes_by_its_agent_and_its_id():
    row = JournalRow(kind=Kind.RUN_STARTED, run_id="run_07_9F2C", agent="refunds", by="mia")
    assert shown(row) == "2026-10-07 03:12:09 07/12 run-started     refunds run_07_9F2C by mia"


def test_an_attempt():
    row = JournalRow(kind=Kind.EXECUTED, tool="issue_refund", attempt="run_07_9F2C:1-0:1", code="ok")
    assert shown(row).endswith("issue_refund ok attempt run_07_9F2C:1-0:1")


def test_a_row_of_an_unknown_kind():
    assert shown(JournalRow(kind="from-the-future")) == "2026-10-07 03:12:09 07/12 from-the-future"


def test_who_is_less_sure_than_usual_is_marked():
    delegated = JournalRow(kind=Kind.DECLINED, by="ann", assurance=Assurance.DELEGATED, channel="api")
    relayed = JournalRow(kind=Kind.DECLINED, by="bot", relayed=True)
    assert shown(delegated).endswith("by ann (api, delegated)")
    assert shown(relayed).endswith("by bot (relayed)")


def test_the_first_revision_is_not_worth_a_word():
    assert "revision" not in shown(JournalRow(kind=Kind.ASK, revision=1))


def test_the_time_is_in_the_readers_zone():
    entry = Entry(7, 12, AT_MS, JournalRow(kind=Kind.ASK))
    assert line(entry, ZoneInfo("Asia/Tokyo")).startswith("2026-10-07 12:12:09 ")


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("a\nb", "a\\u{a}b"),
        ("\x1b[2J", "\\u{1b}[2J"),
        ("\u202egnp.exe", "\\u{202e}gnp.exe"),
        ("\u200b", "\\u{200b}"),
        ("\u2028", "\\u{2028}"),
        ("\U000e0041", "\\u{e0041}"),
        ("\xa0", "\\u{a0}"),
        ("é 李 🙂", "é 李 🙂"),
    ],
)
def test_what_could_move_the_cursor_or_hide_is_spelled_out(text: str, spelled: str):
    assert shown(JournalRow(kind=Kind.ASK, note=text)).endswith(f' "{spelled}"')


@given(st.text(), st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_whatever_is_in_it_it_is_one_line(kind: str, note: str, by: str, fields: list[str]):
    row = JournalRow(
        kind=kind, note=note, by=by, fields=tuple(fields), tool=note, ask_id=by, channel=note, target=by,
        code=note, attempt=by, digest=note, agent=by, run_id=note,
    )  # fmt: skip
    told = shown(row)
    assert all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in told)
