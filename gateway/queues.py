"""The names of the work queues, and of the indexes. Owns nothing else."""

from __future__ import annotations

TIMERS = "timers"
OPEN_ASKS = "asks"
UNDELIVERED = "undelivered"
ACTIVE_RUNS = "runs"
RECENT_RUNS = "recent-runs"


def runs_of(agent: str) -> str:
    """Runs by agent, so that nobody blocks behind work they cannot do."""
    return f"runs:{agent}"


def surfaces_of(channel: str, target: str = "") -> str:
    """Surfaces by channel; a live channel (a terminal) takes its own target's alone."""
    return f"surfaces:{channel}/{target}" if channel in LIVE_CHANNELS else f"surfaces:{channel}"


def asks_for(reference: str) -> str:
    """Open asks by approver reference, so that a change of membership re-indexes nothing."""
    return f"asks:{reference}"


LIVE_CHANNELS = frozenset({"console"})
"""Channels whose targets are served by one process each, and answered in place."""
