"""The console as the publisher sees it: a place that takes views, for whoever talks at this terminal.

Owns the hand-over to the conversation. The conversation shows them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from gateway.channel import Published
from gateway.notice import RunNotice
from gateway.surface import SurfaceRecord
from gateway.view import AskView, Limits


@dataclass(frozen=True, slots=True)
class ConsoleChannel:
    """One terminal. `views` is read by its conversation."""

    views: asyncio.Queue[AskView | RunNotice] = field(default_factory=asyncio.Queue[AskView | RunNotice])
    limits: Limits = field(default_factory=Limits)
    name: str = "console"

    async def publish(self, surface: SurfaceRecord, view: AskView | RunNotice) -> Published:
        self.views.put_nowait(view)
        return Published({"shown": surface.target})
