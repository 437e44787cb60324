"""A proxy between a client and a server that fails on demand: between commit and reply, before, in the middle.

Owns the failures; a test decides where they happen, by a hook that sees every chunk of bytes and says its fate.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import tempfile
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import TypeAlias


class Fate(Enum):
    PASS = auto()
    DROP = auto()
    """The chunk is lost and both ends are closed. A dropped reply is one that the server acted on."""
    RESET = auto()
    """As DROP, but the client's connection breaks off in the hard way."""
    STALL = auto()
    """Nothing moves on this connection, in this direction, until `resume`."""


Hook: TypeAlias = Callable[[bytes], Fate]


def pass_all(chunk: bytes) -> Fate:
    return Fate.PASS


def at_nth(n: int, act: Callable[[], Fate], *, only: bytes = b"") -> Hook:
    """At the nth chunk that contains `only` (from 1), what `act` says, after it did whatever it does: kill somebody."""
    seen = 0

    def hook(chunk: bytes) -> Fate:
        nonlocal seen
        seen += only in chunk
        return act() if seen == n and only in chunk else Fate.PASS

    return hook


class FaultProxy:
    """Listens on a Unix socket, or on a loopback port with `tcp`; passes to `upstream`, a socket's path or a port.

    `upstream`, `on_request` and `on_reply` may be set at any time; a new upstream counts for new connections.
    """

    def __init__(self, upstream: Path | int, *, tcp: bool = False) -> None:
        self.upstream = upstream
        self._tcp = tcp
        self._folder = tempfile.TemporaryDirectory(prefix="signoff-proxy-")
        self._resumed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_request: Hook = pass_all
        self.on_reply: Hook = pass_all
        self.connections = 0

    @property
    def socket(self) -> Path:
        return Path(self._folder.name) / "s"

    @property
    def port(self) -> int:
        assert self._server, "the proxy is not running"
        return self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}" if self._tcp else f"unix://{self.socket}"

    def resume(self) -> None:
        self._resumed.set()
        self._resumed = asyncio.Event()

    def reset_all(self) -> None:
        """Breaks off every connection that there is."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> FaultProxy:
        if self._tcp:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        else:
            self._server = await asyncio.start_unix_server(self._serve, self.socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        self.reset_all()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._join(reader, writer)
        finally:
            self._tasks.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await self._connect()
        self._writers |= {writer, there_writer}
        request = asyncio.create_task(self._pump(reader, there_writer, self._fate_of_request))
        reply = asyncio.create_task(self._pump(there_reader, writer, self._fate_of_reply))
        pumps = {request, reply}
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            fates = await asyncio.gather(*pumps, return_exceptions=True)
            if Fate.RESET in fates:
                _reset_on_close(writer)
            for end in (writer, there_writer):
                end.close()
                self._writers.discard(end)

    def _fate_of_request(self, chunk: bytes) -> Fate:
        return self.on_request(chunk)

    def _fate_of_reply(self, chunk: bytes) -> Fate:
        return self.on_reply(chunk)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, hook: Hook) -> Fate:
        while chunk := await source.read(65536):
            match fate := hook(chunk):
                case Fate.DROP | Fate.RESET:
                    return fate
                case Fate.STALL:
                    await self._resumed.wait()
                case Fate.PASS:
                    pass
            target.write(chunk)
            await target.drain()
        return Fate.DROP

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.upstream, Path):
            return await asyncio.open_unix_connection(self.upstream)
        return await asyncio.open_connection("127.0.0.1", self.upstream)


def _reset_on_close(writer: asyncio.StreamWriter) -> None:
    """Closing with no time to linger sends RST in place of FIN; on a Unix socket there is no such thing."""
    connection = writer.get_extra_info("socket")
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
