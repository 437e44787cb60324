"""The names that an agent's run hands out. Opaque to everything but equality."""

from __future__ import annotations

from typing import NewType

RunId = NewType("RunId", str)
AskKey = NewType("AskKey", str)
"""Names an ask within its run: turn, place of the call in the turn, serial of the ask of that call (`2-0-1`)."""
AttemptId = NewType("AttemptId", str)
"""Names one try at executing a call: `<run>:<turn>-<place>:<number>`."""
