"""The check-ins of an agent, kept as an audit trail in memory: what was asked, what was decided, by whom.

Owns the keeping and the counting. It only listens; for a trail that outlives its process there is the gateway's
journal.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.events import CheckInDecided, CheckInRequested, RunFinished


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInStats:
    """The trail in numbers. `edited` are among the approved; `pending` still wait for a person."""

    requests: int
    approved: int
    declined: int
    edited: int
    pending: int


class CheckInRecorder:
    """A listener that remembers check-ins.

        audit = CheckInRecorder()
        agent.attach(audit)
        ...
        audit.decisions()  # (CheckInDecided(tool="issue_refund", approved=True, by="ann@example.com", ...),)

    The records are frozen, and their nested data is copied at every reading: nobody's change reaches them.
    """

    def __init__(self) -> None:
        self._requests: list[CheckInRequested] = []
        self._decisions: list[CheckInDecided] = []
        self._pending: dict[str, set[str]] = {}

    def __call__(self, event: object) -> None:
        match event:
            case CheckInRequested():
                self._requests.append(event)
                self._pending.setdefault(event.run_id, set()).add(event.ask_key)
            case CheckInDecided():
                self._decisions.append(event)
                self._pending.get(event.run_id, set()).discard(event.ask_key)
            case RunFinished():
                # What nobody decided is no longer asked: expired, withdrawn, or not needed any more.
                self._pending.pop(event.run_id, None)
            case _:
                pass

    def requests(self) -> tuple[CheckInRequested, ...]:
        """Everything people were asked, in order."""
        return tuple(self._requests)

    def decisions(self) -> tuple[CheckInDecided, ...]:
        """Everything people decided, in order."""
        return tuple(self._decisions)

    def stats(self) -> CheckInStats:
        approved = sum(decision.approved for decision in self._decisions)
        return CheckInStats(
            requests=len(self._requests),
            approved=approved,
            declined=len(self._decisions) - approved,
            edited=sum(decision.edited for decision in self._decisions),
            pending=sum(map(len, self._pending.values())),
        )
