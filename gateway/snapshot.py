"""A run and all that is loaded with it, at their versions: what one step starts from.

Owns which documents a run needs and how they are read. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.ids import AttemptId
from agent.run import CallPhase
from gateway.ask import AskRecord, load_ask
from gateway.errors import Terminal
from gateway.ids import AskId, attempt_document, document
from gateway.partitions import kind_of
from gateway.ports import DocumentId, Stored
from gateway.session import AttemptRecord, RunRecord, SessionRecord, load_attempt, load_run, load_session


class RunIncomplete(Terminal):
    """A run whose session is gone: there is nothing to go on with. An operator looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Each record beside its version."""

    run: RunRecord
    run_version: int
    session: SessionRecord
    session_version: int
    asks: Mapping[AskId, tuple[AskRecord, int]]
    attempts: Mapping[AttemptId, tuple[AttemptRecord, int]]


def loads_of(run: RunRecord) -> tuple[DocumentId, ...]:
    """What has to be loaded with a run: its session, its open asks, those that authorized its calls, its attempts."""
    underway = tuple(run.state.in_phase(CallPhase.RUNNING, CallPhase.UNKNOWN))
    authorizing = (run.authorized_by[call.id] for call in underway if call.id in run.authorized_by)
    attempts = (attempt_document(call.attempt.id) for call in underway if call.attempt)
    return tuple(dict.fromkeys((DocumentId(run.session_id), *run.asks.values(), *authorizing, *attempts)))


def read(run_id: str, documents: Mapping[DocumentId, Stored]) -> Snapshot:
    """A snapshot from a run's documents. Raises RunIncomplete."""
    of_run = documents.get(DocumentId(run_id))
    if of_run is None:
        raise RunIncomplete(f"run {run_id} is due, but has no document")
    run = load_run(of_run.body)
    of_session = documents.get(DocumentId(run.session_id))
    if of_session is None:
        raise RunIncomplete(f"run {run_id}: its session {run.session_id} has no document")
    asks = {AskId(s.id): (load_ask(s.body), s.version) for s in documents.values() if kind_of(s.id) == "a"}
    attempts = [(load_attempt(s.body), s.version) for s in documents.values() if kind_of(s.id) == "at"]
    return Snapshot(
        run=run,
        run_version=of_run.version,
        session=load_session(of_session.body),
        session_version=of_session.version,
        asks=asks,
        attempts={record.id: (record, version) for record, version in attempts},
    )


def documents_of(snapshot: Snapshot) -> tuple[DocumentId, ...]:
    """Everything to load again for a fresh snapshot of the same run."""
    return (document(snapshot.run.state.run_id), *loads_of(snapshot.run))
