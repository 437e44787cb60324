"""Times as people read them: `Thu 09:00 UTC`. In the reader's zone, never "in 5 hours": what is shown stays shown."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

WEEK_MS = 6 * 24 * 60 * 60 * 1000


def clock_time(at_ms: int, *, zone: tzinfo | None, now_ms: int) -> str:
    """A moment: the weekday while that is unambiguous, else the date."""
    at = datetime.fromtimestamp(at_ms / 1000, zone or UTC)
    near = abs(at_ms - now_ms) < WEEK_MS
    day = at.strftime("%a") if near else at.strftime("%a %d %b %Y")
    return f"{day} {at:%H:%M} {at.tzname() or 'UTC'}"
