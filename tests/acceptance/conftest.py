"""A folder of its own for each test, and the real command in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

COMMAND = [sys.executable, "-m", "gateway"]
PATIENCE = 30


class Shell:
    """The command line, as somebody in this folder has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home = str(Path(__file__).parents[2])
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_")},
            "SIGNOFF_DATA_DIR": str(folder / "data"),
            "PYTHONPATH": home,
            "TERM": "xterm",
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }

    def run(self, *words: str, expect: int = 0) -> str:
        """What a command printed. Fails if it did not end with the expected status."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == expect, f"{words} ended with {done.returncode}: {printed}"
        return printed

    def talk(self, *words: str) -> pexpect.spawn:
        """A command at a terminal."""
        return pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], *words],
            cwd=str(self.folder),
            env=self.environment,
            encoding="utf-8",
            timeout=PATIENCE,
            dimensions=(40, 100),
        )

    def ledger(self) -> list[str]:
        """What the refunds example really paid out."""
        found = [*self.folder.rglob("ledger.jsonl")]
        return found[0].read_text().splitlines() if found else []


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
