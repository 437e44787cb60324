"""The gateway's names for its records. Each carries its partition: `a_07_K3T9QW2M`.

Owns the kinds and how a new id is made. An ask's id follows from its run and key, so that opening it twice is opening
it once.
"""

from __future__ import annotations

import secrets
from base64 import b32encode
from hashlib import sha256
from typing import NewType

from agent.ids import AskKey, AttemptId, RunId
from gateway.partitions import id_in, partition_of, partition_of_session
from gateway.ports import DocumentId

SessionId = NewType("SessionId", DocumentId)
AskId = NewType("AskId", DocumentId)
SurfaceId = NewType("SurfaceId", DocumentId)
PersonId = NewType("PersonId", str)
"""A person's name in the configuration: `alice` of `[people.alice]`."""


def session_id(key: str) -> SessionId:
    """The session of a conversation, by whatever identifies it where it takes place (a thread, an API session id)."""
    return SessionId(DocumentId(id_in(partition_of_session(key), "s", _serial(key, length=16))))


def run_id(session: SessionId) -> RunId:
    return RunId(id_in(partition_of(session), "run", _random()))


def ask_id(run: RunId, key: AskKey) -> AskId:
    return AskId(DocumentId(id_in(partition_of(run), "a", _serial(f"{run}/{key}", length=10))))


def surface_id(of: str, channel: str, target: str) -> SurfaceId:
    """The surface of an ask, or of a run's notice, at one target of one channel."""
    return SurfaceId(
        DocumentId(id_in(partition_of(of), "sf", _serial(f"{of}/{channel}/{target}", length=12)))
    )


def attempt_document(attempt: AttemptId) -> DocumentId:
    return DocumentId(id_in(partition_of(attempt), "at", _serial(attempt, length=16)))


def document(run: RunId) -> DocumentId:
    return DocumentId(run)


def _serial(text: str, *, length: int) -> str:
    return b32encode(sha256(text.encode()).digest()).decode()[:length]


def _random() -> str:
    return b32encode(secrets.token_bytes(10)).decode()
