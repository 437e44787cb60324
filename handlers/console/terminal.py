"""A terminal to talk through: printing, and asking for a line without blocking the loop.

Owns standard input. A question can be withdrawn while somebody thinks: what was typed so far stays typed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console, RenderableType


class Terminal(Protocol):
    """What a conversation needs of a terminal."""

    def show(self, what: RenderableType) -> None: ...

    async def ask(self, prompt: str) -> str | None:
        """A line, without its end; None when there will be no more."""
        ...


@dataclass
class StandardTerminal:
    """This process's terminal, or whatever its standard input and output are connected to."""

    console: Console
    descriptor: int = 0
    _typed: bytes = b""
    _ended: bool = False
    _waiting: asyncio.Future[None] | None = field(default=None, init=False)

    def show(self, what: RenderableType) -> None:
        self.console.print(what)

    async def ask(self, prompt: str) -> str | None:
        self.console.print(prompt, end="", markup=False, highlight=False)
        self.console.file.flush()
        while b"\n" not in self._typed and not self._ended:
            await self._more()
        if not self._typed and self._ended:
            self.console.print()
            return None
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    async def _more(self) -> None:
        """Wait until there is something to read, in a way that can be cancelled at any time."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self.descriptor, _once(waiting))
        except PermissionError:  # a regular file: always readable, and epoll does not take it
            self._read()
            return
        try:
            await waiting
        finally:
            loop.remove_reader(self.descriptor)
        self._read()

    def _read(self) -> None:
        piece = os.read(self.descriptor, 65_536)
        self._typed += piece
        self._ended = not piece


def _once(waiting: asyncio.Future[None]) -> Callable[[], None]:
    def ready() -> None:
        if not waiting.done():
            waiting.set_result(None)

    return ready
