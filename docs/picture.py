"""Records `signoff demo --approve` as the README's picture: `make picture`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parent / "images" / "terminal.svg"
WIDTH = 92


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run(
            [sys.executable, "-m", "gateway", "demo", "--approve"],
            cwd=folder,
            env={
                **os.environ,
                "SIGNOFF_DATA_DIR": f"{folder}/data",
                "COLUMNS": str(WIDTH),
                "PYTHONPATH": str(Path(__file__).parents[1]),
                "LOGNAME": "ann",
                "FORCE_COLOR": "1",
                "TTY_COMPATIBLE": "1",
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    shown = printed.partition("Tools")[0]
    console = Console(record=True, width=WIDTH, file=Path(os.devnull).open("w"))  # noqa: SIM115  (lives as long)
    console.print(Text.from_ansi(f"$ signoff demo --approve\n{shown}"))
    PICTURE.write_text(console.export_svg(title="signoff"), encoding="utf-8")


if __name__ == "__main__":
    main()
