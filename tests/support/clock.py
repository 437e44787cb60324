"""A clock that only a test moves. The store adds its offset to the server's time, so leases and deadlines move too."""

from __future__ import annotations

import time


class ManualClock:
    """Real time plus what a test added to it: moving it forward is all that a test needs in place of sleeping."""

    def __init__(self) -> None:
        self._offset_ms = 0

    @property
    def offset_ms(self) -> int:
        return self._offset_ms

    def move(self, *, ms: int) -> None:
        self._offset_ms += ms

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._offset_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._offset_ms / 1000
