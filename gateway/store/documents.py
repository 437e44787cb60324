"""Documents as the scripts hand them over: flat lists of id, version, body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from gateway.ports import DocumentId, Stored
from gateway.store.command import Reply


def read_documents(fields: Iterator[Reply]) -> dict[DocumentId, Stored]:
    """Takes the count and as many documents off the front of a script's reply."""
    documents: dict[DocumentId, Stored] = {}
    for _ in range(as_int(next(fields))):
        id, version, body = as_text(next(fields)), as_int(next(fields)), cast(bytes, next(fields))
        documents[DocumentId(id)] = Stored(DocumentId(id), version, body)
    return documents


def as_text(reply: Reply) -> str:
    return cast(bytes, reply).decode()


def as_int(reply: Reply) -> int:
    return int(cast("bytes | int", reply))
