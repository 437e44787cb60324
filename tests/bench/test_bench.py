"""`signoff bench` runs and prints what it promises. Nothing is asserted about speed: machines differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_quick_measurement_without_peers_prints_its_figures_and_goals(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "bench", "--quick", "--no-peers", "--json"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["goals"], "each line of the goals that can be measured alone"
    for goal in printed["goals"].values():
        assert set(goal) >= {"value", "gate", "goal", "gate_met", "goal_met"}
        assert goal["value"] > 0
