"""One row of the journal as one line of text, for a terminal. Pure. Owns the line's order and its words."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, tzinfo

from agent.decision import Assurance
from gateway.journal_row import JournalRow
from gateway.journal_tail import Entry


def line(entry: Entry, zone: tzinfo = UTC) -> str:
    """`2026-10-07 03:12:09 07/12 approved issue_refund a_07_K3T9 by ann (console) "cap until Monday"`."""
    at = datetime.fromtimestamp(entry.at_ms / 1000, zone)
    parts = (f"{at:%Y-%m-%d %H:%M:%S}", f"{entry.partition:02d}/{entry.number}", *_parts(entry.row))
    return " ".join(part for part in parts if part)


def _parts(row: JournalRow) -> tuple[str, ...]:
    return (
        f"{_visible(row.kind):<15}",
        _visible(row.tool or row.agent),
        _visible(row.ask_id or row.run_id),
        _revision(row),
        f"{_visible(row.code)}" if row.code else "",
        f"[{', '.join(map(_visible, row.fields))}]" if row.fields else "",
        f"by {_visible(row.by)}" if row.by else "",
        _means(row),
        f"attempt {_visible(row.attempt)}" if row.attempt else "",
        f"digest {_visible(row.digest[:8])}" if row.digest else "",
        f'"{_visible(row.note)}"' if row.note else "",
    )


def _revision(row: JournalRow) -> str:
    return f"revision {row.revision}" if row.revision is not None and row.revision > 1 else ""


def _means(row: JournalRow) -> str:
    """Through what, and how sure we are of whom, where that is less than usual."""
    place = f"{row.channel} {row.target}".strip()
    sure = str(row.assurance) if row.assurance not in (None, Assurance.PERSON) else ""
    told = [_visible(each) for each in (place, sure, "relayed" if row.relayed else "") if each]
    return f"({', '.join(told)})" if told else ""


def _visible(text: str) -> str:
    """Whatever could move the cursor, hide or turn text around is spelled out: the texts are people's and models'."""
    return "".join(c if _harmless(c) else f"\\u{{{ord(c):x}}}" for c in text)


def _harmless(character: str) -> bool:
    return character == " " or unicodedata.category(character)[0] not in "CZ"
