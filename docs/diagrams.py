"""Draws the state diagrams of docs/concepts.md from the transition tables: `make diagrams`.

Owns the drawing. A test compares the document with what this draws, so that neither can drift.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent.transitions import CALL_TABLE, RUN_TABLE
from gateway.lifecycle import ASK_TABLE

DOCUMENT = Path(__file__).parent / "concepts.md"
TABLES: Mapping[str, Any] = {
    "run": RUN_TABLE,
    "call": CALL_TABLE,
    "ask": ASK_TABLE,
}


def diagram(table: Mapping[StrEnum, Mapping[type, frozenset[StrEnum]]]) -> str:
    """A table as a Mermaid state diagram: an arrow for each pair of states, with the events that lead there."""
    lines = ["stateDiagram-v2"]
    for state, row in table.items():
        arrows: dict[StrEnum, list[str]] = {}
        for event, targets in row.items():
            for target in targets:
                arrows.setdefault(target, []).append(event.__name__)
        lines += [
            f"    {state} --> {target}: {', '.join(sorted(events))}"
            for target, events in sorted(arrows.items())
        ]
    return "\n".join(lines)


def drawn(text: str) -> str:
    """The document with its diagrams drawn anew between their markers."""
    for name, table in TABLES.items():
        block = f"<!-- {name} -->\n```mermaid\n{diagram(table)}\n```\n<!-- /{name} -->"
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _, block=block: block, text, flags=re.DOTALL
        )
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(drawn(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
