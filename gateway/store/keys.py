"""The names of everything that Signoff keeps in Redis.

Owns the name space. Every key of a partition carries its hash tag, so that a commit is one slot in a cluster. Knows
nothing of what the keys hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gateway.partitions import PARTITIONS

BELL = b"signoff:bell"
"""The pub/sub channel of the doorbell; also named in commit.lua."""


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The beginnings of a partition's keys; what follows is a name."""

    text: bytes
    """`07`, as it stands in ids."""
    identity: bytes
    """Says whose store this is, and how many partitions it has."""
    counter: bytes
    journal: bytes
    operation: bytes
    document: bytes
    transcript: bytes
    index: bytes
    work: bytes
    generations: bytes
    tokens: bytes

    def queue(self, name: bytes) -> tuple[bytes, bytes, bytes]:
        return self.work + name, self.generations + name, self.tokens + name


@cache
def keys_of(partition: int) -> PartitionKeys:
    """Raises IndexError for a partition that no store has."""
    if not 0 <= partition < PARTITIONS:
        raise IndexError(f"expected a partition from 0 to {PARTITIONS - 1}, got {partition}")
    text = b"%02d" % partition
    tag = b"signoff:{%b}:" % text
    return PartitionKeys(
        text=text,
        identity=tag + b"store",
        counter=tag + b"rows",
        journal=tag + b"journal",
        operation=tag + b"op:",
        document=tag + b"doc:",
        transcript=tag + b"said:",
        index=tag + b"index:",
        work=tag + b"work:",
        generations=tag + b"gen:",
        tokens=tag + b"hold:",
    )
