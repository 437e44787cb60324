"""A gateway under test: real store, real desk, worker and timers, in this process, with agents that a test scripts.

Owns the wiring and the waiting. Nothing here stands in for what is tested: the model and the tools are the test's, as
they are the user's in production.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.decision import AnyDecision
from agent.ids import RunId
from agent.messages import AssistantMessage, ResultsMessage, Text, ToolUse, UserMessage, load_message
from agent.model import Prompt, Reply, StopReason
from agent.run import FinishReason
from agent.spec import AgentSpec
from gateway.app import Connection, Gateway, build
from gateway.ask import AskRecord, load_ask
from gateway.config import Address, Config, StoreConfig, WorkerConfig
from gateway.desk import Recorded, Submission
from gateway.ids import AskId, PersonId, document
from gateway.intake import Inbound, Received
from gateway.journal_row import JournalRow, load_row
from gateway.people import People, Person
from gateway.ports import DocumentId
from gateway.queues import OPEN_ASKS
from gateway.routing import Route, Routes
from gateway.session import Message, Origin, RunRecord, load_run
from gateway.store.heart import Heart
from gateway.store.opening import open_store
from gateway.telemetry import logger
from tests.support.clock import ManualClock

PEOPLE = People(
    Person(id=PersonId(name), name=name.title(), identities={"console": name})
    for name in ("ann", "bob", "mia")
)
PATIENCE = 20.0
_serial = itertools.count(1)

Answer = Callable[[Prompt], Reply]
Look = Callable[[], Awaitable[object]]
"""Looks for a fact; None: not there yet."""


def says(text: str) -> Reply:
    return Reply(AssistantMessage((Text(text),)), StopReason.END_TURN)


def calls(*uses: tuple[str, Mapping[str, object]], text: str = "") -> Reply:
    """A reply with calls; ids `t1`, `t2`, … unique by a counter, as a model's are."""
    said = (Text(text),) if text else ()
    blocks = tuple(ToolUse(f"t{next(_serial)}", name, arguments) for name, arguments in uses)  # type: ignore[arg-type]
    return Reply(AssistantMessage((*said, *blocks)), StopReason.TOOL_USE)


@dataclass
class Model:
    """Answers by a function of the prompt, which is all that a real one has, too."""

    answer: Answer
    name: str = "scripted"
    prompts: list[Prompt] = field(default_factory=list)

    async def reply(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        await asyncio.sleep(0)
        return self.answer(prompt)


def first_calls(*uses: tuple[str, Mapping[str, object]]) -> Model:
    """Proposes these calls once, then ends with the results it was told."""

    def answer(prompt: Prompt) -> Reply:
        last = prompt.messages[-1]
        if isinstance(last, ResultsMessage):
            return says("; ".join(result.content for result in last.results))
        return calls(*uses)

    return Model(answer)


def config(
    folder: Path,
    *,
    approvers: Sequence[str] = ("ann", "bob"),
    expire_after_ms: int = 3_600_000,
    lease_ms: int = 30_000,
    concurrency: int = 256,
    **route: object,
) -> Config:
    routes = Routes(
        [
            Route(
                name="all",
                channels=(),
                approvers=tuple(approvers),
                expire_after_ms=expire_after_ms,
                **route,  # type: ignore[arg-type]
            )
        ]
    )
    return Config(
        agents=(),
        listen=Address("127.0.0.1", 0),
        base_url=None,
        data_dir=folder,
        store=StoreConfig(url=None, replicas=0, confirm_timeout_ms=1000, allow_unsafe=()),
        worker=WorkerConfig(concurrency=concurrency, lease_ms=lease_ms),
        people=PEOPLE,
        routes=routes,
    )


@dataclass
class Office:
    """A running gateway, and what a test asks of it."""

    gateway: Gateway
    clock: ManualClock

    async def say(
        self,
        agent: str,
        text: str = "go",
        *,
        session: str | None = None,
        id: str | None = None,
        by: str = "mia",
    ) -> Received:
        number = next(_serial)
        return await self.gateway.intake.receive(
            Inbound(
                agent=agent,
                session_key=session or f"session-{number}",
                message=Message(id=id or f"m{number}", text=text, author=by.title(), person=PersonId(by)),
                origin=Origin(),
            )
        )

    async def decide(
        self,
        record: AskRecord,
        decision: AnyDecision,
        *,
        operation: str | None = None,
        revision: int | None = None,
    ) -> Recorded:
        return await self.gateway.desk.submit(
            Submission(
                ask_id=record.id,
                revision=record.revision if revision is None else revision,
                person=PersonId(decision.by),
                decision=decision,
                channel="test",
                operation=operation or f"click-{next(_serial)}",
            )
        )

    async def asks(self, run: RunId | None, *, count: int = 1) -> list[AskRecord]:
        """The open asks of a run, once there are so many."""
        assert run is not None, "the message did not start a run"

        async def look() -> list[AskRecord] | None:
            record = await self.run(run)
            found = [await self.ask(id_) for id_ in record.asks.values()]
            waiting = [ask for ask in found if ask.open]
            return waiting if len(waiting) >= count else None

        return await self.until(look, f"{count} open asks of {run}")

    async def ask(self, id_: AskId) -> AskRecord:
        stored = (await self.gateway.connection.store.load([id_]))[0]
        assert stored is not None, f"no ask {id_}"
        return load_ask(stored.body)

    async def run(self, run: RunId) -> RunRecord:
        stored = (await self.gateway.connection.store.load([document(run)]))[0]
        assert stored is not None, f"no run {run}"
        return load_run(stored.body)

    async def finished(self, run: RunId | None, reason: FinishReason | None = None) -> RunRecord:
        assert run is not None, "the message did not start a run"

        async def look() -> RunRecord | None:
            record = await self.run(run)
            return record if record.state.finish is not None else None

        record = await self.until(look, f"the end of {run}")
        assert reason is None or record.state.finish is reason, f"{run} ended as {record.state.finish}"
        return record

    async def transcript(self, run: RunRecord) -> list[UserMessage | AssistantMessage | ResultsMessage]:
        entries = await self.gateway.connection.store.transcript(DocumentId(run.session_id))
        return [load_message(entry) for entry in entries]

    async def rows(self, run: RunId | str | None = None) -> list[JournalRow]:
        """The journal, of one run or of all."""
        found: list[JournalRow] = []
        for partition in range(64):
            rows = await self.gateway.connection.store.rows(partition, after=0, limit=10_000)
            found += [load_row(row.body) for row in rows]
        return [row for row in found if run is None or row.run_id == run]

    async def kinds(self, run: RunId | str | None = None) -> list[str]:
        return [str(row.kind) for row in await self.rows(run)]

    async def open_asks(self) -> list[str]:
        members = await self.gateway.connection.store.members(OPEN_ASKS, low=None, high=None, limit=100_000)
        return [member.member for member in members]

    async def until(self, look: Look, what: str) -> Any:
        """Wait for a fact in the store; it is asked for again at each turn of the loop that moves."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            found = await look()
            if found is not None:
                return found
            assert asyncio.get_running_loop().time() < deadline, f"waited {PATIENCE} s in vain for {what}"
            await asyncio.sleep(0.002)


@asynccontextmanager
async def office(
    url: str, settings: Config, *agents: AgentSpec, clock: ManualClock | None = None
) -> AsyncIterator[Office]:
    """A gateway on a store, serving these agents until the context ends."""
    clock = clock or ManualClock()
    store = await open_store(url, clock=clock)
    try:
        connection = Connection(store=store, heart=Heart(url, clock=clock), embedded=None)
        gateway = build(
            settings,
            connection,
            channels={},
            agents={agent.name: agent for agent in agents},
            clock=clock,
            give_up=_must_not,
        )
        async with gateway.running():
            yield Office(gateway, clock)
    finally:
        await store.close()


def _must_not() -> None:
    logger.error("lease-lost-in-test")
