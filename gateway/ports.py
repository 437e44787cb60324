"""The gateway's ports to what is stored and to time: `Store`, `Clock`, and the data that crosses them.

Owns the vocabulary of a commit and of claimed work. Must not know Redis, nor what a document holds: bodies are
bytes. Whatever implements `Store` keeps the rules in these docstrings, and `tests/gateway/store/` proves it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol, TypeAlias

DocumentId = NewType("DocumentId", str)
"""Carries its partition and is never used a second time: `run_07_…`, `a_07_…`, `s_07_…`, `sf_07_…`."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as the store holds it."""

    id: DocumentId
    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """Put `body`, or delete with None, if the document is at `expected`; 0 means that it must not exist."""

    id: DocumentId
    expected: int
    body: bytes | None
    loads: tuple[DocumentId, ...] = ()
    """Kept in clear beside the body: who claims this document's work gets these documents with it."""
    expires_ms: int | None = None
    """How long from this commit the document is kept, by the server's own clock. None: until it is deleted."""


@dataclass(frozen=True, slots=True)
class Expect:
    """Nothing is written here, but the whole commit holds only for this version; 0 means that it must not exist."""

    id: DocumentId
    version: int


@dataclass(frozen=True, slots=True)
class Append:
    """Entries at the end of a session's transcript."""

    session: DocumentId
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class IndexPut:
    index: str
    member: str
    score: int


@dataclass(frozen=True, slots=True)
class IndexRemove:
    index: str
    member: str


IndexChange: TypeAlias = IndexPut | IndexRemove


@dataclass(frozen=True, slots=True)
class Wake:
    """Somebody must look at this member. Raises its generation.

    It is due at `at_ms` (None: now), or sooner if it already was; while a live claim holds it, its time stays.
    """

    queue: str
    member: str
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Ends the claim that the commit's `hold` names. The member is next due at `at_ms` (None: now).

    With `leave` it goes from the queue with generation and token. If its generation is no longer `seen`, it stays
    and is due at once, whatever was asked for.
    """

    queue: str
    member: str
    seen: int
    at_ms: int | None = None
    leave: bool = False


WorkChange: TypeAlias = Wake | Release


@dataclass(frozen=True, slots=True)
class Hold:
    """A claim, by the token that its holder chose."""

    queue: str
    member: str
    token: str


@dataclass(frozen=True, slots=True)
class Take:
    """Take the claim on a member that this commit wakes, unless a live claim holds it."""

    queue: str
    member: str
    token: str
    lease_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Everything that becomes true together, in one partition, or not at all.

    Order of the checks: `operation` (seen before: its result, nothing else happens), `not_after_ms`, `hold`, every
    expected version, the shape of what lies in the store. The first that fails raises, and nothing is written.
    """

    partition: int
    operation: str
    keep_ms: int
    """How long the operation's result is kept, that is, how late a repetition is still recognized."""
    not_after_ms: int | None = None
    hold: Hold | None = None
    expect: tuple[Expect, ...] = ()
    writes: tuple[Write, ...] = ()
    appends: tuple[Append, ...] = ()
    rows: tuple[bytes, ...] = ()
    """Journal rows, numbered in the order given."""
    index: tuple[IndexChange, ...] = ()
    work: tuple[WorkChange, ...] = ()
    take: Take | None = None
    confirm: bool = False
    """Wait for the configured replicas."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim: ours until `until_ms` by the store's clock, longer if renewed."""

    member: str
    generation: int
    until_ms: int
    documents: Mapping[DocumentId, Stored]
    """The member's own document and those that it `loads`, as far as they exist."""


@dataclass(frozen=True, slots=True)
class Committed:
    at_ms: int
    first_row: int
    """The number of the first of the commit's journal rows; 0 if it had none."""
    replayed: bool
    generations: tuple[int, ...]
    """One for each of the commit's work changes: the member's generation afterwards; 0 if it left."""
    claim: Claimed | None
    """The claim that `take` took, with its documents as they are after this commit."""
    confirmed: bool
    """False if the commit asked for confirmation and fewer replicas than configured have it."""

    @property
    def taken(self) -> bool:
        return self.claim is not None


@dataclass(frozen=True, slots=True)
class ClaimBatch:
    at_ms: int
    claims: tuple[Claimed, ...]
    next_due_ms: int | None
    """When to look again; in the past if more is due than was asked for. None: the queue is empty."""


@dataclass(frozen=True, slots=True)
class Row:
    """A journal row. Numbers start at 1 and have no gaps within a partition."""

    partition: int
    number: int
    at_ms: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an index, with its score."""

    member: str
    score: int


@dataclass(frozen=True, slots=True)
class QueueDepth:
    queue: str
    waiting: int
    """All members, those due later and those in somebody's hands included."""
    due: int
    oldest_due_ms: int | None


@dataclass(frozen=True, slots=True)
class Ring:
    """A doorbell: somebody should look at this queue. May be lost, late, or for nothing."""

    partition: int
    queue: str


class Clock(Protocol):
    """Time, as the process sees it."""

    @property
    def offset_ms(self) -> int:
        """What the store adds to its server's time. 0, except for a clock that a test moves."""
        ...

    def now_ms(self) -> int: ...

    def monotonic(self) -> float:
        """Seconds that only grow, for leases."""
        ...


class Store(Protocol):
    """Where everything durable is. All its times are the server's, plus the clock's offset."""

    async def commit(self, commit: Commit) -> Committed:
        """Apply it once, however often replies get lost.

        Raises Conflict, TooLate, ClaimLost, StoreDamaged (nothing was written), or NotRecorded.
        """
        ...

    async def load(self, ids: Sequence[DocumentId]) -> tuple[Stored | None, ...]: ...

    async def claim(self, queue: str, *, partition: int, limit: int, lease_ms: int, token: str) -> ClaimBatch:
        """Take what is due. Never repeated by itself: without an answer, the claims run out unseen."""
        ...

    async def renew(self, holds: Sequence[Hold], *, lease_ms: int) -> tuple[int | None, ...]:
        """For each hold the member's generation, with its lease now starting anew; None if it is lost."""
        ...

    async def transcript(self, session: DocumentId, *, start: int = 0) -> list[bytes]: ...

    async def transcript_length(self, session: DocumentId) -> int: ...

    async def rows(self, partition: int, *, after: int, limit: int) -> list[Row]: ...

    async def members(self, index: str, *, low: int | None, high: int | None, limit: int) -> list[Member]:
        """The lowest scores first, both bounds included, over all partitions; None: no bound."""
        ...

    async def queue_depths(self, queues: Sequence[str]) -> tuple[QueueDepth, ...]: ...

    def listen(self) -> AsyncIterator[Ring]: ...

    async def now_ms(self) -> int: ...

    async def close(self) -> None: ...
