"""The roof: builds everything from the configuration, and owns the life of the process.

Owns which parts there are and how they are wired. Everything below gets what it needs passed in; nothing below knows
this module.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

from agent.agent import Agent
from agent.perform import Performer
from agent.spec import AgentSpec
from gateway.channel import Channel
from gateway.clock import SystemClock
from gateway.config import Config
from gateway.consumer import Consumer
from gateway.deadlines import Deadlines
from gateway.desk import Desk
from gateway.drive import Means
from gateway.edit import Editor
from gateway.errors import StoreBusy, Terminal
from gateway.handover import Handover
from gateway.heartbeat import Heartbeat, Renewer
from gateway.instance import this_instance
from gateway.intake import Intake
from gateway.ports import Clock, Store
from gateway.publisher import Publisher
from gateway.secret import load_secret
from gateway.store.embedded import EmbeddedServer, start_embedded
from gateway.store.heart import Heart
from gateway.store.live import find_live
from gateway.store.opening import open_store
from gateway.telemetry import logger
from gateway.transcripts import Transcripts
from gateway.worker import Worker

DRAIN_SECONDS = 25.0
"""Orchestrators kill after 30."""
LEASE_LOST = 75
"""Exit status (EX_TEMPFAIL) of a process that could not keep its claims: start it again."""


class BadAgent(Terminal):
    """An import string that leads to no agent, or two agents of one name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A store that answers. `embedded` is the server that this process brought, if it did."""

    store: Store
    heart: Renewer
    embedded: EmbeddedServer | None


@asynccontextmanager
async def connected(config: Config, *, own: bool, clock: Clock | None = None) -> AsyncGenerator[Connection]:
    """The configured store, or the embedded one: `own` starts it, else a live owner is joined if there is one.

    Raises StoreBusy, StoreRefused or StoreUnreachable.
    """
    clock = clock or SystemClock()
    url, embedded = config.store.url, None
    if url is None:
        url, embedded = _embedded(config, own=own)
    try:
        store = await open_store(
            url,
            clock=clock,
            replicas=config.store.replicas,
            confirm_timeout_ms=config.store.confirm_timeout_ms,
            allow_unsafe=config.store.allow_unsafe,
        )
        try:
            yield Connection(store=store, heart=Heart(url, clock=clock), embedded=embedded)
        finally:
            await store.close()
    finally:
        if embedded is not None:
            embedded.stop()


def _embedded(config: Config, *, own: bool) -> tuple[str, EmbeddedServer | None]:
    live = None if own else find_live(config.data_dir)
    if live is not None:
        return live, None
    try:
        embedded = start_embedded(config.data_dir)
    except StoreBusy:
        live = None if own else find_live(config.data_dir)
        if live is None:
            raise
        return live, None
    return embedded.url, embedded


@dataclass(kw_only=True)
class Gateway:
    """Everything that a process of Signoff is made of."""

    config: Config
    connection: Connection
    agents: Mapping[str, AgentSpec]
    desk: Desk
    intake: Intake
    worker: Worker
    deadlines: Deadlines
    publisher: Publisher
    heartbeat: Heartbeat

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        return (self.worker.consumer, self.deadlines.consumer, self.publisher.consumer)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve while the context lasts, then drain. A part that dies ends the context: the process must not limp."""
        self.heartbeat.start()
        parts = [asyncio.ensure_future(consumer.run()) for consumer in self.consumers]
        parts.append(asyncio.ensure_future(self._listen()))
        if self.connection.embedded is not None:
            parts.append(asyncio.ensure_future(self.connection.embedded.watch()))
        body = cast("asyncio.Task[object]", asyncio.current_task())
        for part in parts:
            part.add_done_callback(lambda done: _died(done, body))
        try:
            yield
        finally:
            await self._end(parts)

    async def _end(self, parts: Sequence[asyncio.Future[None]]) -> None:
        await asyncio.gather(*(consumer.drain(DRAIN_SECONDS) for consumer in self.consumers))
        for part in parts:
            part.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*parts, return_exceptions=True)
        self.heartbeat.stop()

    async def _listen(self) -> None:
        async for ring in self.connection.store.listen():
            self.worker.ring(ring.queue, ring.partition)
            self.deadlines.consumer.ring(ring.queue, ring.partition)
            self.publisher.consumer.ring(ring.queue, ring.partition)


def build(
    config: Config,
    connection: Connection,
    *,
    channels: Mapping[str, Channel],
    agents: Mapping[str, AgentSpec] | None = None,
    clock: Clock | None = None,
    give_up: Callable[[], None] | None = None,
) -> Gateway:
    """Wire a process. `channels` by the queue of their surfaces; `give_up` ends it when its claims cannot be kept."""
    clock = clock or SystemClock()
    agents = agents if agents is not None else resolve_agents(config.agents)
    key = load_secret(config.data_dir, embedded=config.embedded)
    store, lease_ms = connection.store, config.worker.lease_ms
    heartbeat = Heartbeat(this_instance(), connection.heart, clock, lease_ms, give_up or _exit)
    handover, transcripts = Handover(store), Transcripts(store)
    desk = Desk(store, clock, config.authority, Editor(agents, _listeners(agents)), key, handover)
    means = Means(
        store=store,
        clock=clock,
        heartbeat=heartbeat,
        desk=desk,
        routes=config.routes,
        key=key,
        transcripts=transcripts,
    )
    performers = {name: Performer(spec, _listeners({name: spec})) for name, spec in agents.items()}
    worker = Worker(means, performers, lease_ms, config.worker.concurrency)
    handover.serve(worker.consumer)
    return Gateway(
        config=config,
        connection=connection,
        agents=agents,
        desk=desk,
        intake=Intake(store, clock, agents, handover, transcripts),
        worker=worker,
        deadlines=Deadlines(store, clock, heartbeat),
        publisher=Publisher(store, clock, heartbeat, channels, config.people),
        heartbeat=heartbeat,
    )


def resolve_agents(imports: Sequence[str]) -> dict[str, AgentSpec]:
    """The agents that import strings (`module:attribute`) lead to, by name. Raises BadAgent."""
    agents: dict[str, AgentSpec] = {}
    for text in imports:
        agent = _resolve(text)
        if agent.name in agents:
            raise BadAgent(f"{text}: there is an agent named {agent.name!r} already; give each its own name")
        agents[agent.name] = agent
    return agents


def _resolve(text: str) -> AgentSpec:
    module, _, attribute = text.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadAgent(
            f"{text}: expected module:attribute of an Agent; {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, AgentSpec):
        raise BadAgent(f"{text}: expected an Agent, found a {type(found).__name__}")
    return found


def _listeners(agents: Mapping[str, AgentSpec]) -> Callable[[object], None]:
    """Tell the agents' own listeners. One that raises is its own problem, not the run's."""
    listeners = [
        listener for spec in agents.values() if isinstance(spec, Agent) for listener in spec.listeners
    ]

    def emit(event: object) -> None:
        for listener in listeners:
            try:
                listener(event)
            except Exception as error:
                logger.warning("listener", problem=type(error).__name__)

    return emit


def _died(part: asyncio.Future[None], body: asyncio.Task[object]) -> None:
    if part.cancelled() or part.exception() is None:
        return
    logger.error("part-died", problem=type(part.exception()).__name__, exc_info=part.exception())
    body.cancel()


def _exit() -> None:
    """At once, without unwinding: whatever this process still holds is somebody else's in a moment."""
    logger.error("lease-lost", reason="claims could not be renewed: this process ends before they do")
    os._exit(LEASE_LOST)
