"""The port to a way of reaching people: what the publisher hands over, and how delivery fails.

Owns the protocol. Knows no channel; each is one folder in `handlers/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.errors import Retryable, Terminal
from gateway.notice import RunNotice
from gateway.surface import SurfaceRecord
from gateway.view import AskView, Limits


class DeliveryDelayed(Retryable):
    """Not delivered; worth trying again, after `retry_after` seconds where the platform named them."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class DeliveryRefused(Terminal):
    """Not delivered, and trying again cannot help: the target is gone, or we are not let in."""


@dataclass(frozen=True, slots=True)
class Published:
    """Where the rendering is now: whatever the channel needs to find it again."""

    refs: Mapping[str, str]


class Channel(Protocol):
    """One way to reach people."""

    @property
    def name(self) -> str:
        """As routes call it: `console`, `slack`."""
        ...

    @property
    def limits(self) -> Limits:
        """What one rendering can hold; a view that does not fit gets no Approve."""
        ...

    async def publish(self, surface: SurfaceRecord, view: AskView | RunNotice) -> Published:
        """Post the view, or bring the rendering that `surface.refs` names to it.

        Raises DeliveryDelayed or DeliveryRefused.
        """
        ...
