"""The whole measurement: who takes part, in which order, and which figures and ratios come of it.

Owns the plan. Each part repeats as often as told; every ratio is made within its repetition, then the median is taken.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.benchmark.contest import TASKS, Contestant, Rates, repetition
from gateway.benchmark.contestants import LangGraphSqlite, PydanticAi, Signoff
from gateway.benchmark.floor import floor
from gateway.benchmark.house import OpenHouse, gated_agent
from gateway.benchmark.libraries import library
from gateway.benchmark.listing import fill_pydantic_ai, fill_signoff, list_pydantic_ai, list_signoff
from gateway.benchmark.memory import bytes_of_pydantic_ai, bytes_of_signoff
from gateway.benchmark.report import Report
from gateway.benchmark.resuming import resume_langgraph, resume_signoff, steps

SHORT = 10
LONG = 1_000
VERY_LONG = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured. `seconds` is the time of one rate."""

    repetitions: int
    seconds: float
    peers: bool
    listed: int
    long_runs: int
    small_asks: int
    rounds: int


THOROUGH = Plan(repetitions=5, seconds=1.5, peers=True, listed=10_000, long_runs=8, small_asks=300, rounds=5)
QUICK = Plan(repetitions=1, seconds=0.5, peers=True, listed=10_000, long_runs=3, small_asks=100, rounds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What the roof brings: a store, a way to build gateways on it, and a process to start."""

    plan: Plan
    url: str
    socket: Path
    folder: Path
    open_house: OpenHouse
    first_decision: Callable[[], Awaitable[float]]
    report: Report
    progress: Callable[[str], None]

    async def run(self) -> None:
        """Measure all, into the report."""
        langgraph = LangGraphSqlite(self.folder) if self.plan.peers else None
        pydantic_ai = PydanticAi(self.url) if self.plan.peers else None
        contestants: list[Contestant] = [Signoff(self.open_house)]
        contestants += [peer for peer in (langgraph, pydantic_ai) if peer is not None]
        await self._cycles(contestants)
        await self._steps()
        await self._resume(langgraph)
        await self._bytes(pydantic_ai)
        await self._listing(pydantic_ai)
        await self._start()

    async def _cycles(self, contestants: Sequence[Contestant]) -> None:
        commits = await self._commits_a_cycle()
        taken: list[dict[str, Rates]] = []
        for number in range(self.plan.repetitions):
            self.progress(f"cycles, repetition {number + 1} of {self.plan.repetitions}")
            rates = await repetition(contestants, number, self.plan.seconds)
            alone, together = (
                floor(self.socket, tasks=tasks, seconds=self.plan.seconds / 3) / commits
                for tasks in (1, TASKS)
            )
            taken.append({**rates, "floor": Rates(alone, together, 0)})
        self.report.figures["commits_a_cycle"] = commits
        names = list(taken[0])
        self.report.figures["cycles_per_second_one_by_one"] = {
            name: statistics.median(each[name].sequential for each in taken) for name in names
        }
        self.report.figures[f"cycles_per_second_{TASKS}_at_once"] = {
            name: statistics.median(each[name].together for each in taken) for name in names
        }
        self.report.figures[f"p99_ms_of_a_cycle_{TASKS}_at_once"] = {
            name: statistics.median(each[name].p99_ms for each in taken) for name in names if name != "floor"
        }
        self._cycle_ratios(taken)

    def _cycle_ratios(self, taken: Sequence[dict[str, Rates]]) -> None:
        def ratio(make: Callable[[dict[str, Rates]], float]) -> float:
            return statistics.median(make(each) for each in taken)

        ratios, peers = self.report.ratios, [name for name in taken[0] if name not in ("signoff", "floor")]
        if peers:
            ratios["together_to_langgraph_sqlite"] = ratio(
                lambda each: each["signoff"].together / each["langgraph-sqlite"].together
            )
            ratios["together_to_best_peer"] = ratio(
                lambda each: each["signoff"].together / max(each[peer].together for peer in peers)
            )
            ratios["sequential_to_best_peer"] = ratio(
                lambda each: each["signoff"].sequential / max(each[peer].sequential for peer in peers)
            )
        ratios["sequential_to_floor"] = ratio(
            lambda each: each["signoff"].sequential / each["floor"].sequential
        )
        ratios["together_to_floor"] = ratio(lambda each: each["signoff"].together / each["floor"].together)

    async def _commits_a_cycle(self) -> float:
        async with self.open_house(gated_agent()) as house:
            await house.resume(*await house.pause("counted-0"))
            house.witness.calls.clear()
            for n in range(10):
                await house.resume(*await house.pause(f"counted-{n + 1}"))
            return round(house.witness.calls["commit"] / 10)

    async def _steps(self) -> None:
        self.progress("a step at 10 and at 10,000 messages")
        taken = await steps(
            self.open_house, short=SHORT, long=VERY_LONG, rounds=self.plan.rounds, prefix="steps-"
        )
        self.report.figures["ms_a_turn"] = {
            f"at {SHORT}": statistics.median(taken.short) * 1000,
            f"at {VERY_LONG}": statistics.median(taken.long) * 1000,
        }
        self.report.ratios["step_10000_to_10"] = statistics.median(
            long / short for short, long in zip(taken.short, taken.long, strict=True)
        )

    async def _resume(self, langgraph: LangGraphSqlite | None) -> None:
        figures: dict[str, list[float]] = {"signoff": []}
        ratios: list[float] = []
        for number in range(self.plan.repetitions):
            self.progress(f"resume at {LONG:,} messages, repetition {number + 1} of {self.plan.repetitions}")
            prefix = f"resume-{number}-"
            ours = statistics.median(
                await resume_signoff(self.open_house, messages=LONG, runs=self.plan.long_runs, prefix=prefix)
            )
            figures["signoff"].append(ours)
            if langgraph is not None:
                theirs = statistics.median(
                    await resume_langgraph(langgraph, messages=LONG, runs=self.plan.long_runs, prefix=prefix)
                )
                figures.setdefault("langgraph-sqlite", []).append(theirs)
                ratios.append(ours / theirs)
        self.report.figures[f"resume_ms_at_{LONG}_messages"] = {
            name: statistics.median(seconds) * 1000 for name, seconds in figures.items()
        }
        if ratios:
            self.report.ratios["resume_1000_to_langgraph_sqlite"] = statistics.median(ratios)

    async def _bytes(self, pydantic_ai: PydanticAi | None) -> None:
        self.progress("bytes per pending ask")
        for name, messages, asks in (("", SHORT, self.plan.small_asks), ("_1000", LONG, self.plan.long_runs)):
            async with self._server() as server:
                async with self.open_house(gated_agent()) as house:
                    ours = await bytes_of_signoff(
                        house, server, messages=messages, asks=asks, prefix=f"bytes{name}-"
                    )
                figures = {"signoff": ours}
                if pydantic_ai is not None:
                    async with pydantic_ai.desk() as desk:
                        figures["pydantic-ai"] = await bytes_of_pydantic_ai(
                            desk, server, messages=messages, asks=asks, prefix=f"bytes{name}-"
                        )
                    self.report.ratios[f"bytes{name}_to_pydantic_ai"] = ours / figures["pydantic-ai"]
            self.report.figures[f"bytes_per_pending_ask_at_{messages}_messages"] = figures

    async def _listing(self, pydantic_ai: PydanticAi | None) -> None:
        self.progress(f"listing {self.plan.listed:,} open asks")
        figures: dict[str, list[float]] = {}
        async with self.open_house(gated_agent()) as house:
            await fill_signoff(house, self.plan.listed)
            for _ in range(self.plan.rounds):
                count, seconds = await list_signoff(house)
                _require_complete(count, self.plan.listed)
                figures.setdefault("signoff", []).append(seconds * 1000)
        if pydantic_ai is not None:
            async with pydantic_ai.desk() as desk:
                await fill_pydantic_ai(desk, self.plan.listed, "listed-")
                for _ in range(self.plan.rounds):
                    count, seconds = await list_pydantic_ai(desk, "listed-")
                    _require_complete(count, self.plan.listed)
                    figures.setdefault("pydantic-ai", []).append(seconds * 1000)
            self.report.ratios["listed_to_pydantic_ai"] = statistics.median(
                ours / theirs for ours, theirs in zip(figures["signoff"], figures["pydantic-ai"], strict=True)
            )
        self.report.figures[f"ms_to_list_{self.plan.listed}_open_asks"] = {
            name: statistics.median(taken) for name, taken in figures.items()
        }

    async def _start(self) -> None:
        self.progress("from the start of a process to its first decision")
        taken = [await self.first_decision() for _ in range(self.plan.repetitions)]
        self.report.ratios["seconds_to_first_decision"] = statistics.median(taken)

    @asynccontextmanager
    async def _server(self) -> AsyncGenerator[Any]:
        """The server itself, to ask it how much it holds."""
        client = library("redis.asyncio").Redis.from_url(self.url, protocol=2)
        try:
            yield client
        finally:
            await client.aclose()


def _require_complete(count: int, expected: int) -> None:
    if count < expected:
        raise LookupError(f"expected a complete list of at least {expected} asks, got {count}")
