"""The 64 partitions of the store: how many there are, where a session belongs, how an id says its own.

Owns the arithmetic and the form of an id (`run_07_…`). Knows nothing of Redis or of what the ids name.
"""

from __future__ import annotations

from hashlib import sha256

from gateway.errors import UnknownPartition

PARTITIONS = 64
"""Never changes: the ids that are out in cards and mails carry their partition, and the store checks the count."""


def partition_of_session(session_key: str) -> int:
    """The partition of a session, and so of everything that commits together with it."""
    return int.from_bytes(sha256(session_key.encode()).digest()[:4]) % PARTITIONS


def partition_of(name: str) -> int:
    """The partition that an id or a member of a queue carries: 7 for `run_07_9f2c`."""
    partition = _BY_TEXT.get(name.partition("_")[2][:3])
    if partition is None:
        raise UnknownPartition(name)
    return partition


def kind_of(name: str) -> str:
    """The kind that an id carries: `run` for `run_07_9f2c`."""
    return name.partition("_")[0]


def id_in(partition: int, kind: str, serial: str) -> str:
    """The id of a thing of this kind in this partition. The serial is whatever makes it unique."""
    return f"{kind}_{partition:02d}_{serial}"


_BY_TEXT = {f"{partition:02d}_": partition for partition in range(PARTITIONS)}
