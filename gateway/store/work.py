"""Claims on due work as the commands that carry them, and what their replies mean. Does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from gateway.partitions import partition_of
from gateway.ports import ClaimBatch, Claimed, Hold
from gateway.store.command import Reply, pack
from gateway.store.documents import as_int, as_text, read_documents
from gateway.store.keys import keys_of
from gateway.store.scripts import WORK


@dataclass(frozen=True, slots=True)
class Renewal:
    """The holds of one partition and queue, renewed by one command. `places` are theirs in what the caller gave."""

    partition: int
    queue: str
    places: tuple[int, ...]
    holds: tuple[Hold, ...]


def pack_claim(queue: str, *, partition: int, limit: int, lease_ms: int, token: str, offset_ms: int) -> bytes:
    keys = keys_of(partition)
    return pack(
        *(b"EVALSHA", WORK.digest, b"3", *keys.queue(queue.encode())),
        *(b"claim", b"%d" % offset_ms, b"%d" % lease_ms, token.encode(), b"%d" % limit, keys.document),
    )


def read_claims(reply: Reply) -> ClaimBatch:
    fields = iter(cast("list[Reply]", reply))
    at_ms, next_due = as_int(next(fields)), next(fields)
    claims = tuple(
        Claimed(as_text(next(fields)), as_int(next(fields)), as_int(next(fields)), read_documents(fields))
        for _ in range(as_int(next(fields)))
    )
    return ClaimBatch(at_ms=at_ms, claims=claims, next_due_ms=as_int(next_due) if next_due else None)


def renewals(holds: Sequence[Hold]) -> list[Renewal]:
    """One for every partition and queue among the holds."""
    groups: dict[tuple[int, str], list[int]] = {}
    for place, hold in enumerate(holds):
        groups.setdefault((partition_of(hold.member), hold.queue), []).append(place)
    return [
        Renewal(partition, queue, tuple(places), tuple(holds[place] for place in places))
        for (partition, queue), places in groups.items()
    ]


def renewal_parts(renewal: Renewal, *, lease_ms: int, offset_ms: int) -> list[bytes]:
    parts = [b"EVALSHA", WORK.digest, b"3", *keys_of(renewal.partition).queue(renewal.queue.encode())]
    parts += [b"renew", b"%d" % offset_ms, b"%d" % lease_ms]
    for hold in renewal.holds:
        parts += (hold.member.encode(), hold.token.encode())
    return parts


def read_renewal(reply: Reply) -> list[int | None]:
    return [as_int(generation) if generation else None for generation in cast("list[Reply]", reply)]
