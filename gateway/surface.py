"""A surface: one rendering of one ask, or of a run's notice, at one target of one channel.

Owns the record and its JSON form. What it shows follows from the store, never from the payload that came in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from gateway.errors import Terminal
from gateway.ids import SurfaceId
from gateway.ports import DocumentId

SURFACE_SCHEMA = 1


class SurfaceState(StrEnum):
    WANTED = "wanted"
    """Not shown yet, or shown as something that is no longer true."""
    SHOWN = "shown"
    FAILED = "failed"
    """Delivery failed for good. Visible to operators; the ask is open all the same."""
    GONE = "gone"
    """What it was for is over, and it was never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceRecord:
    """`refs` is what the channel needs to find its rendering again (a message's id); empty: not posted yet."""

    id: SurfaceId
    of: str
    """The ask's id, or the run's."""
    kind: Literal["ask", "notice"]
    channel: str
    target: str
    state: SurfaceState = SurfaceState.WANTED
    refs: dict[str, str] = field(default_factory=dict[str, str])
    shown: str = ""
    """Fingerprint of what is shown; equal to the wanted one: nothing to do."""
    tries: int = 0
    """Failed deliveries in a row."""
    error: str = ""
    """Why the last delivery failed, in one line for operators."""
    schema: int = SURFACE_SCHEMA

    @property
    def about(self) -> DocumentId:
        """The document that it renders."""
        return DocumentId(self.of)


class UnreadableSurface(Terminal):
    """A stored surface that this version cannot read. It is kept as it is."""


_SURFACE: TypeAdapter[SurfaceRecord] = TypeAdapter(SurfaceRecord)


def dump_surface(record: SurfaceRecord) -> bytes:
    return _SURFACE.dump_json(record, exclude_none=True)


def load_surface(body: bytes) -> SurfaceRecord:
    try:
        return _SURFACE.validate_json(body)
    except ValidationError as error:
        raise UnreadableSurface(f"not a surface's record: {error.error_count()} problems") from error
