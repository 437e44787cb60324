"""A stage for crashes: a victim process, a proxy before its store, and the world that its agent acts on.

Owns the points at which a victim can be killed, always from outside, and the record of what was really done.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import cast

from gateway.app import Connection, build
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from gateway.store.scripts import COMMIT
from tests.support.clock import ManualClock
from tests.support.faultproxy import Fate, FaultProxy
from tests.support.office import Office, config
from tests.support.valkey import Valkey
from tests.support.victim import World, victim_agent

COMMITTED = b"$2\r\nok\r\n"
"""How commit.lua's answer begins, as RESP."""


class When(StrEnum):
    BEFORE = "before"
    BETWEEN = "between"
    """After the commit or the effect, before its answer arrived."""
    AFTER = "after"


@dataclass(frozen=True)
class Point:
    """The nth commit, model call or tool call."""

    what: str
    nth: int
    when: When

    def __str__(self) -> str:
        return f"{self.what}{self.nth}-{self.when}"


@dataclass
class Scene:
    """The world around one victim: its store's proxy, its model and its tool's effects, and its end."""

    point: Point | None
    seen: dict[str, int] = field(default_factory=dict[str, int])
    effects: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """(run, attempt, idempotency key) of every payment that was really made."""
    victim: asyncio.subprocess.Process | None = None
    paying: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a payment was made."""
    visits: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, payments are made and not answered."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    def at(self, what: str, when: When) -> bool:
        """Whether this is the point. Counts on the first of a thing's three moments."""
        if when is When.BEFORE:
            self.seen[what] = self.seen.get(what, 0) + 1
        return self.point is not None and self.point == Point(what, self.seen.get(what, 0), when)

    def kill(self) -> Fate:
        self.point = None
        if self.victim is not None and self.victim.returncode is None:
            os.kill(self.victim.pid, signal.SIGKILL)
        return Fate.DROP

    def on_request(self, chunk: bytes) -> Fate:
        if COMMIT.digest not in chunk:
            return Fate.PASS
        if self.at("commit", When.BEFORE):
            return self.kill()
        return Fate.PASS

    def on_reply(self, chunk: bytes) -> Fate:
        if COMMITTED not in chunk:
            return Fate.PASS
        if self.at("commit", When.BETWEEN):
            return self.kill()
        if self.at("commit", When.AFTER):
            asyncio.get_running_loop().call_soon(self.kill)
        return Fate.PASS

    async def world(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one model call, or make one payment."""
        visit = cast("asyncio.Task[None]", asyncio.current_task())
        self.visits.add(visit)
        try:
            await self._visit(reader, writer)
        except (OSError, ValueError):
            pass  # killed while it spoke
        finally:
            writer.close()
            self.visits.discard(visit)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        what, *words = (await reader.readline()).decode().split()
        if not self.at(what, When.BEFORE) or self.kill() is None:
            if what == "tool":
                self.effects.append((words[0], words[1], words[2]))
                self.paying.set()
                await self.may_answer.wait()
            if self.at(what, When.BETWEEN):
                self.kill()
            else:
                writer.write(b"paid\n")
                await writer.drain()
                if self.at(what, When.AFTER):
                    self.kill()


@asynccontextmanager
async def stage(valkey: Valkey, folder: Path, scene: Scene) -> AsyncIterator[tuple[Office, FaultProxy, str]]:
    """The proxy, the world, and an office that takes messages and decisions but drives nothing."""
    socket = str(valkey.folder / f"w{os.getpid()}")
    clock = ManualClock()
    store = await open_store(valkey.url, clock=clock)
    server = await asyncio.start_unix_server(scene.world, socket)
    agent = victim_agent(World(socket))
    gateway = build(
        config(folder),
        Connection(store=store, heart=Heart(valkey.url, clock=clock), embedded=None),
        channels={},
        agents={agent.name: agent},
        clock=clock,
    )
    try:
        async with FaultProxy(valkey.socket) as proxy:
            proxy.on_request, proxy.on_reply = scene.on_request, scene.on_reply
            yield Office(gateway, clock), proxy, socket
    finally:
        if scene.victim is not None and scene.victim.returncode is None:
            scene.victim.kill()
            await scene.victim.wait()
        scene.may_answer.set()
        server.close()
        await asyncio.gather(*scene.visits, return_exceptions=True)
        await store.close()


async def start_victim(url: str, socket: str, folder: Path, *options: str) -> asyncio.subprocess.Process:
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.victim", url, socket, str(folder), *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert victim.stdout is not None
    assert await victim.stdout.readline() == b"up\n", "the victim did not start"
    return victim
