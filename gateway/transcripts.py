"""Transcripts in this process: read once, then only what was added.

Owns a bounded cache. A transcript only ever grows, so whatever was read stays true, and a step costs the same at
message 10 and 10,000.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice

from agent.messages import AssistantMessage, ResultsMessage, UserMessage, load_message
from gateway.errors import Terminal
from gateway.ids import SessionId
from gateway.ports import Store

Message = UserMessage | AssistantMessage | ResultsMessage
Messages = list[Message]
KEPT_SESSIONS = 512


class TranscriptShort(Terminal):
    """The store holds fewer messages than the run has seen. An operator looks."""


@dataclass
class Transcripts:
    store: Store
    _kept: OrderedDict[SessionId, Messages] = field(default_factory=OrderedDict[SessionId, Messages])

    async def upto(self, session: SessionId, length: int) -> tuple[Message, ...]:
        """The first `length` messages of a session, however it grows afterwards. Raises TranscriptShort."""
        known = self._kept.setdefault(session, [])
        self._kept.move_to_end(session)
        if len(known) < length:
            start = len(known)
            entries = await self.store.transcript(session, start=start)
            del known[start:]
            known.extend(load_message(entry) for entry in entries)
        if len(known) < length:
            raise TranscriptShort(f"session {session}: expected {length} messages, found {len(known)}")
        self._forget_oldest()
        return tuple(islice(known, length))

    def extend(self, session: SessionId, length: int, messages: Messages) -> None:
        """Add what this process just committed after the first `length` messages."""
        known = self._kept.get(session)
        if known is not None and len(known) == length:
            known.extend(messages)
        elif known is None and length == 0:
            self._kept[session] = list(messages)
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._kept) > KEPT_SESSIONS:
            self._kept.popitem(last=False)
