"""A gateway process to be killed: `python -m tests.support.victim STORE WORLD FOLDER [--ahead MS] [--idempotent]`.

Its model and its tool ask the test's world over a socket before they answer, so that the test can kill it around
every outbound call. Nothing in it helps the killing.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agent.agent import Agent
from agent.messages import ResultsMessage
from agent.model import Prompt, Reply
from agent.tools import ToolContext, tool
from gateway.app import Connection, build
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from tests.support.clock import ManualClock
from tests.support.office import calls, config, says

LEASE_MS = 1_500


class World:
    """The other end of everything that the agent does."""

    def __init__(self, path: str) -> None:
        self.path = path

    async def tell(self, *words: str) -> str:
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write((" ".join(words) + "\n").encode())
        answer = (await reader.readline()).decode().strip()
        writer.close()
        return answer


class Model:
    name = "victim"

    def __init__(self, world: World) -> None:
        self.world = world

    async def reply(self, prompt: Prompt) -> Reply:
        await self.world.tell("model", str(len(prompt.messages)))
        last = prompt.messages[-1]
        if isinstance(last, ResultsMessage):
            return says("; ".join(result.content for result in last.results))
        return calls(("pay", {"order": "A-1"}))


def victim_agent(world: World, *, idempotent: bool = False) -> Agent:
    @tool(ask="Pay order {order}?", check_in="always", timeout=20, idempotent=idempotent)
    async def pay(order: str, context: ToolContext) -> str:
        """Pay an order."""
        return await world.tell("tool", context.run_id, context.attempt_id, context.idempotency_key)

    return Agent(name="victim", model=Model(world), tools=[pay])


async def serve(url: str, world: str, folder: str, *, ahead_ms: int, idempotent: bool) -> None:
    clock = ManualClock()
    clock.move(ms=ahead_ms)
    store = await open_store(url, clock=clock)
    agent = victim_agent(World(world), idempotent=idempotent)
    gateway = build(
        config(Path(folder), lease_ms=LEASE_MS),
        Connection(store=store, heart=Heart(url, clock=clock), embedded=None),
        channels={},
        agents={agent.name: agent},
        clock=clock,
    )
    async with gateway.running():
        sys.stdout.write("up\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    url, world, folder, *options = sys.argv[1:]
    ahead = int(options[options.index("--ahead") + 1]) if "--ahead" in options else 0
    asyncio.run(serve(url, world, folder, ahead_ms=ahead, idempotent="--idempotent" in options))
