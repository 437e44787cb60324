"""The session and its runs as stored: a conversation, at most one active run, and the messages that wait.

Owns the records and their JSON form. Only the holder of a run's claim writes the run; everybody else who wants
something of it (a message, a stop) writes the session, which every step of the run checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from agent.ids import AskKey, AttemptId, RunId
from agent.messages import ResultStatus
from agent.run import RunState
from gateway.errors import Terminal
from gateway.ids import AskId, PersonId, SessionId

SESSION_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a message came from, so that notices go back there."""

    channel: str = ""
    target: str = ""
    """The thread, as its channel addresses it."""
    place: str = ""
    """As people call it: `#support`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An inbound message. `id` is the platform's, so that the same message is taken once."""

    id: str
    text: str
    author: str
    """As shown to the model."""
    person: PersonId | None = None
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    by: PersonId
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    id: SessionId
    key: str
    agent: str
    tenant: str = "default"
    owner: PersonId | None = None
    origin: Origin = field(default_factory=Origin)
    active_run: RunId | None = None
    stop: Stop | None = None
    """Asks the active run to end."""
    queue: tuple[Message, ...] = ()
    runs: int = 0
    schema: int = SESSION_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as stored: the loop's state, and what the gateway adds.

    `asks` maps the open asks' keys to their records; `length` is the transcript's after the last commit.
    """

    state: RunState
    session_id: SessionId
    origin: Origin = field(default_factory=Origin)
    authors: tuple[PersonId, ...] = ()
    started_at_ms: int = 0
    asks: dict[AskKey, AskId] = field(default_factory=dict[AskKey, AskId])
    authorized_by: dict[str, AskId] = field(default_factory=dict[str, AskId])
    """The ask whose approval a call runs under, by call id."""
    asked: tuple[AskId, ...] = ()
    """The latest asks of this run, for its notice."""
    length: int = 0
    finished_at_ms: int | None = None
    schema: int = SESSION_SCHEMA


class AttemptState(StrEnum):
    STARTED = "started"
    SETTLED = "settled"
    ABANDONED = "abandoned"
    """Given up: its outcome was asked about, and somebody answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One try at executing a call. Whoever has its result settles it, even after losing the run."""

    id: AttemptId
    run_id: RunId
    call_id: str
    tool: str
    instance: str
    """The process that started it."""
    started_at_ms: int
    state: AttemptState = AttemptState.STARTED
    content: str = ""
    status: ResultStatus = ResultStatus.OK
    late: bool = False
    schema: Literal[1] = 1


class UnreadableRecord(Terminal):
    """A stored record that this version cannot read. It is kept as it is."""


_SESSION: TypeAdapter[SessionRecord] = TypeAdapter(SessionRecord)
_RUN: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
_ATTEMPT: TypeAdapter[AttemptRecord] = TypeAdapter(AttemptRecord)


def dump_session(record: SessionRecord) -> bytes:
    return _SESSION.dump_json(record, exclude_none=True)


def load_session(body: bytes) -> SessionRecord:
    return _read(_SESSION, body, "session")


def dump_run(record: RunRecord) -> bytes:
    return _RUN.dump_json(record, exclude_none=True)


def load_run(body: bytes) -> RunRecord:
    return _read(_RUN, body, "run")


def dump_attempt(record: AttemptRecord) -> bytes:
    return _ATTEMPT.dump_json(record, exclude_none=True)


def load_attempt(body: bytes) -> AttemptRecord:
    return _read(_ATTEMPT, body, "attempt")


T = TypeVar("T")


def _read(adapter: TypeAdapter[T], body: bytes, what: str) -> T:
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise UnreadableRecord(f"not a record of a {what}: {error.error_count()} problems") from error
