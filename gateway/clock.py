"""The clock that production uses. Owns nothing; a test moves `tests.support.clock.ManualClock` instead."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's own clock; the store adds nothing to its server's."""

    @property
    def offset_ms(self) -> int:
        return 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
