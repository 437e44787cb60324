"""Lengths of time as people write them: `30m`, `24h`, `1h30m`. Owns the reading of them, into milliseconds."""

from __future__ import annotations

import re

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_FORM = re.compile(r"(?:\d{1,6}[dhms])+", re.ASCII)
_PART = re.compile(r"(\d+)([dhms])", re.ASCII)


class NotADuration(ValueError):
    """Not a length of time."""

    def __init__(self) -> None:
        super().__init__('a duration such as "30m", "24h" or "1h30m" (units d, h, m, s)')


def parse_duration(text: object) -> int:
    """In milliseconds. Raises NotADuration."""
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise NotADuration
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))
