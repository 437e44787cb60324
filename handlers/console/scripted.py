"""A conversation whose one answer is known in advance: what `signoff demo` is made of.

Owns the waiting and the showing. It answers consent alone; anything else that the agent asks was not expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.text import Text

from agent.checkin import CheckIn
from agent.decision import AnyDecision
from gateway.notice import RunNotice
from gateway.view import AskView
from handlers.console import render
from handlers.console.chat import Chat


class Unexpected(Exception):
    """The agent asked for something that no answer was given for."""


@dataclass
class Scripted:
    chat: Chat
    answer: Callable[[CheckIn], AnyDecision]
    closed: list[AskView] = field(default_factory=list[AskView])
    """Views of asks after they were closed, the latest last."""

    async def see_through(self, message: str) -> RunNotice:
        """Send the message and answer until the run ends. Raises Unexpected."""
        await self.chat.send(message)
        while True:
            view = await self.chat.views.get()
            match view:
                case RunNotice():
                    self.chat.terminal.show(render.notice(view))
                    return view
                case AskView(open=True):
                    await self._answer(view)
                case AskView():
                    self.closed.append(view)
                    self.chat.show_closed(view)

    async def _answer(self, view: AskView) -> None:
        record = await self.chat.load(view)
        if record is None or not record.open:
            return
        self.chat.show(view)
        if not isinstance(record.ask, CheckIn):
            raise Unexpected(f"the agent asked: {view.headline}")
        if not await self.chat.submit(record, self.answer(record.ask)):
            raise Unexpected("the answer was not taken")
        self.chat.terminal.show(Text(""))
