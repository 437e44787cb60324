"""Every error that the gateway raises on purpose, by who acts next.

Owns the four bases and the store's errors. A message says what was expected, what arrived (its shape, never its
content) and what to do. Knows nothing of HTTP statuses or of the words that people see.
"""

from __future__ import annotations


class SignoffError(Exception):
    """Anything raised on purpose. Never raised itself."""


class CallerError(SignoffError):
    """The caller asked for something that cannot be: it changes its call."""


class Retryable(SignoffError):
    """Nothing is wrong with the call: the same intention may succeed on a later try."""


class Terminal(SignoffError):
    """Trying again changes nothing: this holder stops, or an operator acts."""


class AlreadyDecided(SignoffError):
    """Somebody else settled it first: show what they settled."""


class UnknownPartition(CallerError):
    """An id that does not carry a partition of this store."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"expected an id such as run_07_9f2c, its partition from 00 to 63; got {len(name)} characters without one"
        )


class InvalidCommit(CallerError):
    """A commit that contradicts itself. A mistake in the calling code, refused before it is sent."""


class Conflict(Retryable):
    """A document was not at the version that the commit was made for. Load again, then decide afresh."""

    def __init__(self, *, id: str, expected: int, found: int) -> None:
        super().__init__(f"{id} is at version {found}, expected {expected}: load it again and decide afresh")
        self.id = id
        self.expected = expected
        self.found = found


class TooLate(Terminal):
    """The store's clock was past the commit's `not_after_ms`. Nothing was written."""

    def __init__(self, *, not_after_ms: int, now_ms: int) -> None:
        super().__init__(
            f"the deadline passed {now_ms - not_after_ms} ms ago by the store's clock: nothing was written"
        )
        self.not_after_ms = not_after_ms
        self.now_ms = now_ms


class ClaimLost(Terminal):
    """The claim belongs to somebody else by now, or to nobody. Nothing was written: drop the work."""

    def __init__(self, *, queue: str, member: str) -> None:
        super().__init__(
            f"the claim on {member} in {queue} is no longer ours: nothing was written, drop the work"
        )
        self.queue = queue
        self.member = member


class NotRecorded(Retryable):
    """The store did not say that it recorded the commit. With `unsure`, it may have, or may yet.

    Calling again with the same operation id is safe: it is recorded once.
    """

    def __init__(self, *, reason: str, unsure: bool) -> None:
        state = "it may have been recorded" if unsure else "nothing was recorded"
        super().__init__(
            f"the store did not confirm ({reason}); {state}: try again with the same operation id"
        )
        self.reason = reason
        self.unsure = unsure


class StoreUnreachable(Retryable):
    """A read or a claim got no answer. With `unsure`, a claim may have been taken: its lease runs out unseen."""

    def __init__(self, *, reason: str, unsure: bool = False) -> None:
        super().__init__(f"the store did not answer ({reason}): try again")
        self.reason = reason
        self.unsure = unsure


class StoreRefused(Terminal):
    """A server that would lose decisions, or that is not one of ours. The start stops here."""


class StoreMissing(StoreRefused):
    """No server was configured and none can be started on this platform."""


class StoreBusy(Terminal):
    """Another process owns the data folder."""


class StoreDamaged(Terminal):
    """What lies in the store is not what Signoff put there. Nothing was written: an operator looks."""

    def __init__(self, *, key: str, found: str) -> None:
        super().__init__(
            f"{key} in the store is not as Signoff left it ({found}): nothing was written, look at it first"
        )
        self.key = key
        self.found = found
