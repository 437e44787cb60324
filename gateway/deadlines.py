"""What happens when time passes: asks expire.

Owns the timers. Each open ask with a deadline has one; when it is due the ask, if it is still open, expires and its
run is woken. A timer that finds its ask closed simply leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway import asking, journal
from gateway.ask import load_ask
from gateway.changes import DRIVER_KEPT_MS, Changes, wake
from gateway.consumer import Consumer
from gateway.errors import ClaimLost, Conflict
from gateway.heartbeat import Heartbeat
from gateway.lifecycle import Lapsed, transition
from gateway.partitions import partition_of
from gateway.ports import Claimed, Clock, DocumentId, Hold, Release, Store
from gateway.queues import TIMERS, runs_of

LEASE_MS = 10_000
CONCURRENCY = 16


@dataclass
class Deadlines:
    """All timers of this process."""

    store: Store
    clock: Clock
    heartbeat: Heartbeat
    consumer: Consumer = field(init=False)

    def __post_init__(self) -> None:
        self.consumer = Consumer(
            store=self.store,
            clock=self.clock,
            heartbeat=self.heartbeat,
            queues=(TIMERS,),
            handle=self._due,
            lease_ms=LEASE_MS,
            concurrency=CONCURRENCY,
        )

    async def _due(self, claim: Claimed, hold: Hold) -> None:
        """Expire the ask, or leave. Lost to a decision of the same moment, the timer looks again and leaves."""
        stored = claim.documents.get(DocumentId(claim.member))
        changes = self._expire(stored.body, stored.version) if stored else Changes()
        release = Release(TIMERS, claim.member, claim.generation, leave=True)
        commit = (changes + Changes(work=(release,))).commit(
            partition_of(claim.member),
            f"timer/{hold.token}/{claim.member}",
            keep_ms=DRIVER_KEPT_MS,
            hold=hold,
        )
        try:
            await self.store.commit(commit)
        except Conflict:
            await self._look_again(claim, hold)
        except ClaimLost:
            return

    def _expire(self, body: bytes, version: int) -> Changes:
        record = load_ask(body)
        if not record.open or record.deadline_ms is None:
            return Changes()
        expired = transition(record, Lapsed(self.clock.now_ms()))
        changes = asking.changed(expired, version) + wake(runs_of(record.agent), record.run_id)
        return changes + Changes(rows=(journal.expired(expired),))

    async def _look_again(self, claim: Claimed, hold: Hold) -> None:
        """Give the claim back at once: the ask changed under us, and the next claim brings it as it is now."""
        release = Release(TIMERS, claim.member, claim.generation)
        await self.store.commit(
            Changes(work=(release,)).commit(
                partition_of(claim.member),
                f"timer-again/{hold.token}/{claim.member}",
                keep_ms=DRIVER_KEPT_MS,
                hold=hold,
            )
        )
