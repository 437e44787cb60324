"""A commit as the one command that carries it, and what its reply means.

Owns the order of commit.lua's arguments and refuses commits that contradict themselves, because the script trusts
what it is told. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import assert_never, cast

from gateway.errors import ClaimLost, Conflict, InvalidCommit, SignoffError, StoreDamaged, TooLate
from gateway.ports import (
    Claimed,
    Commit,
    Committed,
    IndexChange,
    IndexPut,
    IndexRemove,
    Release,
    Wake,
    WorkChange,
    Write,
)
from gateway.store.command import Reply, number, pack_all
from gateway.store.documents import as_int, as_text, read_documents
from gateway.store.keys import PartitionKeys, keys_of
from gateway.store.scripts import COMMIT

MOST_ENTRIES = 4_000
"""Of writes, entries, rows and changes together: a commit holds up everybody else's."""
LONGEST_MS = 10 * 366 * 24 * 3_600_000
_LARGEST_SCORE = 2**53


def pack_commit(commit: Commit, *, offset_ms: int) -> bytes:
    """Raises InvalidCommit for a commit that no store could keep."""
    _check(commit)
    names = keys_of(commit.partition)
    queues = {name: place for place, name in enumerate(_queue_names(commit), start=1)}
    indexes = {
        name: place for place, name in enumerate(dict.fromkeys(c.index for c in commit.index), start=1)
    }
    keys = _keys(commit, names, queues, indexes)
    return pack_all(
        [
            b"EVALSHA",
            COMMIT.digest,
            b"%d" % len(keys),
            *keys,
            *_arguments(commit, names, queues, indexes, offset_ms),
        ]
    )


def read_committed(commit: Commit, reply: Reply, *, confirmed: bool) -> Committed:
    """What the script answered. Raises what it refused with."""
    fields = iter(cast("list[Reply]", reply))
    verdict = cast(bytes, next(fields))
    refusal = _REFUSALS.get(verdict)
    if refusal:
        raise refusal(commit, fields)
    at_ms, first_row, _took, *generations = map(int, cast(bytes, next(fields)).split())
    return Committed(
        at_ms=at_ms,
        first_row=first_row,
        replayed=verdict == b"replayed",
        generations=tuple(generations),
        claim=_claim(commit, fields),
        confirmed=confirmed,
    )


def _keys(
    commit: Commit, names: PartitionKeys, queues: dict[str, int], indexes: dict[str, int]
) -> list[bytes]:
    document = names.document
    return [
        names.operation + commit.operation.encode(),
        names.counter,
        names.journal,
        *chain.from_iterable(names.queue(name.encode()) for name in queues),
        *[document + write.id.encode() for write in commit.writes],
        *[document + expect.id.encode() for expect in commit.expect],
        *[names.transcript + append.session.encode() for append in commit.appends],
        *[names.index + name.encode() for name in indexes],
    ]


def _arguments(
    commit: Commit, names: PartitionKeys, queues: dict[str, int], indexes: dict[str, int], offset_ms: int
) -> list[bytes]:
    """Flat, in the order in which commit.lua reads."""
    arguments = [
        b"%d" % offset_ms,
        b"%d" % commit.keep_ms,
        b"1" if commit.confirm else b"0",
        number(commit.not_after_ms),
        b"%d" % len(queues),
        b"%d" % len(commit.writes),
        b"%d" % len(commit.expect),
        b"%d" % len(commit.appends),
        b"%d" % len(indexes),
        b"%d" % len(commit.rows),
        b"%d" % len(commit.index),
        b"%d" % len(commit.work),
        *[names.text + b" " + name.encode() for name in queues],
        *_hold(commit, queues),
        *_take(commit, names, queues),
    ]
    for write in commit.writes:
        arguments += _write(write)
    arguments += [b"%d" % expect.version for expect in commit.expect]
    arguments += commit.rows
    for append in commit.appends:
        arguments.append(b"%d" % len(append.entries))
        arguments += append.entries
    for change in commit.index:
        arguments += _index_change(change, indexes)
    for change in commit.work:
        arguments += _work_change(change, queues)
    return arguments


def _hold(commit: Commit, queues: dict[str, int]) -> tuple[bytes, ...]:
    if commit.hold is None:
        return b"0", b"", b""
    return b"%d" % queues[commit.hold.queue], commit.hold.member.encode(), commit.hold.token.encode()


def _take(commit: Commit, names: PartitionKeys, queues: dict[str, int]) -> tuple[bytes, ...]:
    take = commit.take
    if take is None:
        return b"0", b"", b"", b"", b""
    return (
        b"%d" % queues[take.queue],
        take.member.encode(),
        take.token.encode(),
        b"%d" % take.lease_ms,
        names.document,
    )


def _write(write: Write) -> tuple[bytes, ...]:
    kept = b"0" if write.body is None else b"1"
    return (
        b"%d" % write.expected,
        kept,
        write.body or b"",
        " ".join(write.loads).encode(),
        number(write.expires_ms),
    )


def _index_change(change: IndexChange, indexes: dict[str, int]) -> tuple[bytes, ...]:
    match change:
        case IndexPut():
            return b"%d" % indexes[change.index], b"%d" % change.score, change.member.encode()
        case IndexRemove():
            return b"%d" % indexes[change.index], b"", change.member.encode()
        case _:
            assert_never(change)


def _work_change(change: WorkChange, queues: dict[str, int]) -> tuple[bytes, ...]:
    queue, member = b"%d" % queues[change.queue], change.member.encode()
    match change:
        case Wake():
            return queue, member, number(change.at_ms), b"", b""
        case Release():
            return queue, member, number(change.at_ms), b"%d" % change.seen, b"1" if change.leave else b"0"
        case _:
            assert_never(change)


def _queue_names(commit: Commit) -> dict[str, None]:
    names = dict.fromkeys(change.queue for change in commit.work)
    if commit.hold:
        names[commit.hold.queue] = None
    return names


def _claim(commit: Commit, fields: Iterator[Reply]) -> Claimed | None:
    generation = next(fields, None)
    if generation is None or commit.take is None:
        return None
    return Claimed(commit.take.member, as_int(generation), as_int(next(fields)), read_documents(fields))


def _conflict(commit: Commit, fields: Iterator[Reply]) -> SignoffError:
    place, found = as_int(next(fields)) - 1, as_int(next(fields))
    expected = [*((w.id, w.expected) for w in commit.writes), *((e.id, e.version) for e in commit.expect)]
    return Conflict(id=expected[place][0], expected=expected[place][1], found=found)


def _late(commit: Commit, fields: Iterator[Reply]) -> SignoffError:
    return TooLate(not_after_ms=commit.not_after_ms or 0, now_ms=as_int(next(fields)))


def _lost(commit: Commit, fields: Iterator[Reply]) -> SignoffError:
    return (
        ClaimLost(queue=commit.hold.queue, member=commit.hold.member)
        if commit.hold
        else InvalidCommit("no hold")
    )


def _damaged(commit: Commit, fields: Iterator[Reply]) -> SignoffError:
    return StoreDamaged(key=as_text(next(fields)), found=as_text(next(fields)))


def _oversized(commit: Commit, fields: Iterator[Reply]) -> SignoffError:
    return InvalidCommit("the store takes fewer entries in a commit: split it")


_REFUSALS: dict[bytes, Callable[[Commit, Iterator[Reply]], SignoffError]] = {
    b"conflict": _conflict,
    b"late": _late,
    b"lost": _lost,
    b"damaged": _damaged,
    b"oversized": _oversized,
}


def _check(commit: Commit) -> None:
    tag = f"_{commit.partition:02d}_"
    for name in _names(commit):
        at = name.find("_")
        if name[at : at + 4] != tag:
            raise InvalidCommit(
                f"expected ids of partition {commit.partition:02d}, got one that carries another"
            )
    if len({write.id for write in commit.writes}) != len(commit.writes):
        raise InvalidCommit("a document is written twice: put both changes into one write")
    _check_claims(commit)
    _check_numbers(commit)


def _names(commit: Commit) -> Iterator[str]:
    """Everything in the commit that carries a partition."""
    for write in commit.writes:
        yield write.id
        yield from write.loads
    for expect in commit.expect:
        yield expect.id
    for append in commit.appends:
        yield append.session
    for change in commit.work:
        yield change.member


def _check_claims(commit: Commit) -> None:
    held = (commit.hold.queue, commit.hold.member) if commit.hold else None
    releases = [change for change in commit.work if isinstance(change, Release)]
    if any((release.queue, release.member) != held for release in releases) or len(releases) > 1:
        raise InvalidCommit("a commit releases only the claim that it holds, once: name it as `hold`")
    take = commit.take
    if take and not any(
        isinstance(c, Wake) and (c.queue, c.member) == (take.queue, take.member) for c in commit.work
    ):
        raise InvalidCommit("a commit takes only a claim on what it wakes")


def _check_numbers(commit: Commit) -> None:
    entries = len(commit.writes) + len(commit.rows) + len(commit.index) + len(commit.work)
    if entries + sum(len(append.entries) for append in commit.appends) > MOST_ENTRIES:
        raise InvalidCommit(f"more than {MOST_ENTRIES} entries in one commit: split it")
    spans = [commit.keep_ms, *(w.expires_ms for w in commit.writes if w.expires_ms is not None)]
    if commit.take:
        spans.append(commit.take.lease_ms)
    if not all(0 < span <= LONGEST_MS for span in spans):
        raise InvalidCommit(
            "expected spans of more than 0 ms and at most ten years: a server refuses others midway"
        )
    if any(isinstance(change, IndexPut) and abs(change.score) > _LARGEST_SCORE for change in commit.index):
        raise InvalidCommit("expected scores up to 2^53: larger ones lose digits")
