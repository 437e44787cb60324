"""Drives runs: claims those whose agent this process has, many at once, and ends itself rather than lose a claim.

Owns the process's runs. How one run is driven is `drive.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.perform import Performer
from gateway.consumer import Consumer
from gateway.drive import Drive, Means, drive_of
from gateway.partitions import partition_of
from gateway.ports import Claimed, Hold
from gateway.queues import runs_of


@dataclass
class Worker:
    """All runs of this process."""

    means: Means
    performers: Mapping[str, Performer]
    """By agent; also what this process can claim."""
    lease_ms: int
    concurrency: int
    consumer: Consumer = field(init=False)
    _drives: dict[str, Drive] = field(default_factory=dict[str, Drive])

    def __post_init__(self) -> None:
        self.consumer = Consumer(
            store=self.means.store,
            clock=self.means.clock,
            heartbeat=self.means.heartbeat,
            queues=tuple(runs_of(agent) for agent in self.performers),
            handle=self._drive,
            lease_ms=self.lease_ms,
            concurrency=self.concurrency,
        )

    def ring(self, queue: str, partition: int) -> None:
        """A run wants attention: one that waits in the queue, or one in our hands that asks people."""
        self.consumer.ring(queue, partition)
        for member, drive in self._drives.items():
            if drive.waits_for_people and partition_of(member) == partition and drive.hold.queue == queue:
                drive.poke()

    async def _drive(self, claim: Claimed, hold: Hold) -> None:
        performer = self.performers[hold.queue.removeprefix(runs_of(""))]
        drive = drive_of(self.means, performer, claim, hold)
        self._drives[claim.member] = drive
        try:
            await drive.run()
        finally:
            self._drives.pop(claim.member, None)
