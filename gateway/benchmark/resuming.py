"""What a long conversation costs: a step in it, and taking a run up again that a process has never seen.

Owns these figures. Signoff resumes in a gateway that was built after the pause, so nothing is in its memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from gateway.benchmark import work
from gateway.benchmark.contestants import LangGraphSqlite
from gateway.benchmark.house import FREE, OpenHouse, Pace, free_agent, gated_agent
from gateway.benchmark.libraries import library
from gateway.benchmark.memory import pause_after, seed

TURNS = 10
"""Few, so that a session of ten messages stays short."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Seconds a turn in a short session and in a long one, taken alternately."""

    short: list[float]
    long: list[float]


async def steps(open_house: OpenHouse, *, short: int, long: int, rounds: int, prefix: str) -> Steps:
    """A turn is two steps: the model's reply with a call, and the result. The model takes no time."""
    pace, taken = Pace(TURNS), Steps([], [])
    async with open_house(free_agent(pace)) as house:
        for round_ in range(rounds + 1):
            for messages, seconds in ((short, taken.short), (long, taken.long)):
                session = f"{prefix}{messages}-{round_}"
                await seed(house, session, messages)
                await house.witness.ended(await house.say(FREE, session, "m1"))
                seconds.append(pace.take())
    return Steps(taken.short[1:], taken.long[1:])


async def resume_signoff(open_house: OpenHouse, *, messages: int, runs: int, prefix: str) -> list[float]:
    async with open_house(gated_agent()) as house:
        paused = [await pause_after(house, f"{prefix}{n}", messages) for n in range(runs)]
        warm = await house.pause(f"{prefix}warm")
    took: list[float] = []
    async with open_house(gated_agent()) as house:
        await house.resume(*warm)
        for run, ask in paused:
            began = time.perf_counter()
            await house.resume(run, ask)
            took.append(time.perf_counter() - began)
    return took


async def resume_langgraph(peer: LangGraphSqlite, *, messages: int, runs: int, prefix: str) -> list[float]:
    command, said = library("langgraph.types").Command, library("langchain_core.messages")
    threads = [{"configurable": {"thread_id": f"{prefix}{n}"}} for n in range(runs + 1)]
    before = [
        said.HumanMessage(text) if by_user else said.AIMessage(text)
        for by_user, text in work.earlier(messages)
    ]
    async with peer.graph() as graph:
        for thread in threads:
            await graph.ainvoke({"messages": [*before, said.HumanMessage(work.REQUEST)]}, thread)
    took: list[float] = []
    async with peer.graph() as graph:
        for thread in threads:
            began = time.perf_counter()
            await graph.ainvoke(command(resume=True), thread)
            took.append(time.perf_counter() - began)
    return took[1:]
