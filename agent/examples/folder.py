"""Where the examples' tools leave what they did, so that an execution can be seen."""

from __future__ import annotations

import os
from pathlib import Path


def folder(example: str) -> Path:
    """The example's folder in the data folder (`SIGNOFF_DATA_DIR`, else `.signoff`). Made when it is first used."""
    path = Path(os.environ.get("SIGNOFF_DATA_DIR") or ".signoff") / example
    path.mkdir(parents=True, exist_ok=True)
    return path
