"""Takes messages in: a new run when the session is free, a place in its queue when it is not.

Owns sessions' beginnings, deduplication of inbound messages, and the start of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agent.ids import RunId
from agent.loop import advance
from agent.messages import dump_message, load_message
from agent.moves import MessageReceived
from agent.run import RunState
from agent.spec import AgentSpec
from gateway import journal
from gateway.changes import INBOUND_KEPT_MS, Changes
from gateway.desk import ROUNDS, DeskBusy
from gateway.errors import CallerError, Conflict
from gateway.handover import Handover
from gateway.ids import SessionId, document, run_id, session_id
from gateway.partitions import partition_of
from gateway.ports import Append, Clock, IndexPut, Store, Wake, Write
from gateway.queues import ACTIVE_RUNS, runs_of
from gateway.session import Message, Origin, RunRecord, SessionRecord, dump_run, dump_session, load_session
from gateway.snapshot import loads_of
from gateway.transcripts import Transcripts

MAX_QUEUED = 100


class UnknownAgent(CallerError):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"there is no agent {name!r} here; expected one of {known}")


class QueueFull(CallerError):
    """The session already has as many messages waiting as it may."""


class AwaitingDecision(CallerError):
    """A run of this session waits for a person, and the caller does not want its message queued."""

    code = "ERR_AWAITING_DECISION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One message of a person, from whatever channel."""

    agent: str
    session_key: str
    message: Message
    origin: Origin
    tenant: str = "default"
    queue: bool = True


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a message: the run it started, or None while it waits for its turn."""

    session: SessionId
    run: RunId | None
    queued: int = 0


@dataclass(frozen=True, slots=True)
class Intake:
    store: Store
    clock: Clock
    agents: Mapping[str, AgentSpec]
    handover: Handover
    transcripts: Transcripts

    async def receive(self, inbound: Inbound) -> Received:
        """Take a message in, once. Raises UnknownAgent, QueueFull, AwaitingDecision, DeskBusy or NotRecorded."""
        spec = self.agents.get(inbound.agent)
        if spec is None:
            raise UnknownAgent(inbound.agent, sorted(self.agents))
        for _ in range(ROUNDS):
            try:
                return await self._receive(inbound, spec)
            except Conflict:
                continue
        raise DeskBusy("the session is being changed by others: try again")

    async def _receive(self, inbound: Inbound, spec: AgentSpec) -> Received:
        of = session_id(inbound.session_key)
        stored = (await self.store.load([of]))[0]
        session = load_session(stored.body) if stored else _new(of, inbound)
        version = stored.version if stored else 0
        if session.active_run is not None:
            return await self._queue(inbound, session, version)
        length = await self.store.transcript_length(of) if session.runs else 0
        started, run, changes = begin(
            session, inbound.message, spec, length=length, now_ms=self.clock.now_ms()
        )
        changes += Changes(writes=(Write(of, version, dump_session(started)),))

        def known() -> None:
            """What the worker would otherwise read right away."""
            for append in changes.appends:
                self.transcripts.extend(of, length, [load_message(entry) for entry in append.entries])

        if await self._commit(changes, inbound, of, first=known):
            return await self._replayed(of, inbound)
        return Received(of, run.state.run_id)

    async def _queue(self, inbound: Inbound, session: SessionRecord, version: int) -> Received:
        if any(message.id == inbound.message.id for message in session.queue):
            return Received(session.id, None, len(session.queue))
        if not inbound.queue:
            raise AwaitingDecision(f"{AwaitingDecision.code}: run {session.active_run} is not over yet")
        if len(session.queue) >= MAX_QUEUED:
            raise QueueFull(
                f"{MAX_QUEUED} messages wait in this session already: try again after the decision"
            )
        queued = replace(session, queue=(*session.queue, inbound.message))
        changes = Changes(writes=(Write(session.id, version, dump_session(queued)),))
        if await self._commit(changes, inbound, session.id):
            return await self._replayed(session.id, inbound)
        return Received(session.id, None, len(queued.queue))

    async def _commit(
        self, changes: Changes, inbound: Inbound, of: SessionId, *, first: Callable[[], None] | None = None
    ) -> bool:
        """Whether this message had been taken in before."""
        operation = f"message:{inbound.session_key}:{inbound.message.id}"
        commit = changes.commit(partition_of(of), operation, keep_ms=INBOUND_KEPT_MS)
        return (await self.handover.commit(commit, first=first)).replayed

    async def _replayed(self, of: SessionId, inbound: Inbound) -> Received:
        stored = (await self.store.load([of]))[0]
        session = load_session(stored.body) if stored else _new(of, inbound)
        return Received(of, session.active_run, len(session.queue))


def begin(
    session: SessionRecord, message: Message, spec: AgentSpec, *, length: int, now_ms: int
) -> tuple[SessionRecord, RunRecord, Changes]:
    """The session with a new active run, the run, and what a commit has to write beside the session."""
    new = run_id(session.id)
    state = RunState(run_id=new, agent=spec.name, tenant=session.tenant, rules=spec.rules)
    step = advance(state, MessageReceived(text=message.text, author=message.author))
    entries = tuple(dump_message(said) for said in step.messages)
    run = RunRecord(
        state=step.state,
        session_id=session.id,
        origin=session.origin,
        authors=(message.person,) if message.person else (),
        started_at_ms=now_ms,
        length=length + len(entries),
    )
    changes = Changes(
        writes=(Write(document(new), 0, dump_run(run), loads=loads_of(run)),),
        appends=(Append(session.id, entries),),
        rows=(journal.run_started(run),),
        index=(IndexPut(ACTIVE_RUNS, new, now_ms),),
        work=(Wake(runs_of(spec.name), new),),
    )
    return replace(session, active_run=new, runs=session.runs + 1, stop=None), run, changes


def _new(of: SessionId, inbound: Inbound) -> SessionRecord:
    return SessionRecord(
        id=of,
        key=inbound.session_key,
        agent=inbound.agent,
        tenant=inbound.tenant,
        owner=inbound.message.person,
        origin=inbound.origin,
    )
