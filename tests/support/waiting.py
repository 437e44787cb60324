"""Waiting for what another process does, where nothing tells us: looks often, fails with words if it never comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_PATIENCE_S = 20.0
_LOOK_S = 0.002


async def until(condition: Callable[[], object], *, what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        if condition():
            return
        assert time.monotonic() < deadline, f"{what}: not within {_PATIENCE_S:g} s"
        await asyncio.sleep(_LOOK_S)
