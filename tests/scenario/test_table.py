"""The table: every scenario of the contract has a test, or a reason why it waits for a later part of the product."""

from __future__ import annotations

import re
from pathlib import Path

ALL = range(1, 53)
ELSEWHERE = {
    41: "tests/torture/test_stop.py: a tool slower than its lease, two clicks",
    42: "tests/torture/test_kill.py: killed after the tool, before its result was stored",
}
WAITING = {
    18: "hosted sessions over HTTP",
    23: "hosted sessions over HTTP",
    30: "doors for agents (relayed declines)",
    33: "grants",
    44: "HTTP routes",
    46: "signed callbacks of a chat platform",
    47: "signed links",
    48: "two channels at once",
    49: "a notice in a chat thread; at the terminal: tests/acceptance",
    50: "a channel that can be down",
}


def test_every_scenario_is_proven_or_waits_for_a_reason() -> None:
    proven = {
        int(number)
        for file in Path(__file__).parent.glob("test_*.py")
        for number in re.findall(r"^@scenario\((\d+),", file.read_text(), re.MULTILINE)
    }
    assert proven | set(ELSEWHERE) | set(WAITING) == set(ALL)
    assert not proven & set(WAITING), "take it off the list of those that wait"


def test_proofs_elsewhere_exist() -> None:
    for place in ELSEWHERE.values():
        assert Path(__file__).parents[2].joinpath(place.partition(":")[0]).is_file()
