"""What one commit changes, collected piece by piece and sent as one.

Owns the collecting. Each piece (an ask opened, a call settled) is a `Changes`; added up they make the commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.ports import Append, Commit, Expect, Hold, IndexChange, Take, Wake, WorkChange, Write

INBOUND_KEPT_MS = 24 * 60 * 60 * 1000
"""How long an inbound message or a decision is recognized when it comes again."""
DRIVER_KEPT_MS = 15 * 60 * 1000
"""How long a driver's own commit is recognized when it is repeated."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Part of a commit. `a + b` is both."""

    expect: tuple[Expect, ...] = ()
    writes: tuple[Write, ...] = ()
    appends: tuple[Append, ...] = ()
    rows: tuple[bytes, ...] = ()
    index: tuple[IndexChange, ...] = ()
    work: tuple[WorkChange, ...] = ()

    def __add__(self, other: Changes) -> Changes:
        return Changes(
            self.expect + other.expect,
            self.writes + other.writes,
            self.appends + other.appends,
            self.rows + other.rows,
            self.index + other.index,
            self.work + other.work,
        )

    def commit(
        self,
        partition: int,
        operation: str,
        *,
        keep_ms: int,
        not_after_ms: int | None = None,
        hold: Hold | None = None,
        take: Take | None = None,
        confirm: bool = False,
    ) -> Commit:
        """The commit of all this. A document that is both expected and written is checked by its write."""
        written = {write.id for write in self.writes}
        return Commit(
            partition=partition,
            operation=operation,
            keep_ms=keep_ms,
            not_after_ms=not_after_ms,
            hold=hold,
            expect=tuple(dict.fromkeys(e for e in self.expect if e.id not in written)),
            writes=self.writes,
            appends=self.appends,
            rows=self.rows,
            index=self.index,
            work=_once(self.work),
            take=take,
            confirm=confirm,
        )


def _once(work: tuple[WorkChange, ...]) -> tuple[WorkChange, ...]:
    """Waking a member twice in one commit is waking it once."""
    seen: dict[tuple[type[WorkChange], str, str], WorkChange] = {}
    for change in work:
        seen.setdefault((type(change), change.queue, change.member), change)
    return tuple(seen.values())


def with_rows(changes: Changes, *rows: bytes) -> Changes:
    return replace(changes, rows=changes.rows + rows)


def wake(queue: str, member: str, at_ms: int | None = None) -> Changes:
    return Changes(work=(Wake(queue, member, at_ms),))
