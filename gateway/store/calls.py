"""Calls that outlast a lost connection, a failover, a moved slot, a forgotten script.

Owns what a failed call means: try elsewhere, try again, or give up, and with which error. Knows nothing of what the
commands say.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Protocol, cast

from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from gateway.errors import Retryable, StoreDamaged, StoreRefused
from gateway.store.command import Reply, pack
from gateway.store.nodes import Nodes
from gateway.store.scripts import SCRIPTS
from gateway.store.wire import Answer, Wire, WireLost


class GivenUp(Protocol):
    """The error to give up with. `unsure`: the server may have done it all the same."""

    def __call__(self, *, reason: str, unsure: bool) -> Retryable: ...


_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5


class _Next(Enum):
    """What to do after an error that says that nothing was done, or that it may be repeated."""

    AGAIN = auto()
    REFRESH = auto()
    """The server is not the one to ask: find out which is."""
    LOAD_SCRIPTS = auto()
    GIVE_UP = auto()


class Calls:
    def __init__(self, nodes: Nodes, *, insist_s: float) -> None:
        self._nodes = nodes
        self._insist_s = insist_s

    async def once(self, partition: int, packed: bytes, *, given_up: GivenUp) -> Reply:
        """Sent again only where the server said that it did nothing with it."""
        attempt = _Attempt(self._nodes, partition, (packed,))
        for _ in range(3):
            answers = await attempt.send()
            error = answers[0]
            if not isinstance(error, Exception):
                return error
            if _next(error) not in (_Next.REFRESH, _Next.LOAD_SCRIPTS):
                break
            await attempt.prepare(error)
        raise attempt.give_up(given_up)

    async def surely(self, partition: int, *packed: bytes, given_up: GivenUp) -> list[Reply]:
        """Repeats them together until all are answered or the time is up."""
        answers = await self._nodes.wire(partition).call_together(*packed)
        if error := _first_error(answers):
            attempt = _Attempt(self._nodes, partition, packed)
            attempt.learn(answers)
            answers = await self._insist(attempt, error, given_up)
        return cast("list[Reply]", answers)

    async def confirmed(
        self, partition: int, packed: bytes, wait: bytes, *, given_up: GivenUp
    ) -> tuple[Reply, Reply]:
        """Repeats until `packed` is answered. What `wait` brought is only known if it came with that answer."""
        attempt = _Attempt(self._nodes, partition, (packed, wait), needed=1, confirming=True)
        answers = await attempt.send()
        if error := _first_error(answers[:1]):
            answers = await self._insist(attempt, error, given_up)
        reply, waited = answers
        return cast(Reply, reply), None if isinstance(waited, Exception) else waited

    async def _insist(self, attempt: _Attempt, error: Exception, given_up: GivenUp) -> list[Answer]:
        pause_s = _FIRST_PAUSE_S
        try:
            async with asyncio.timeout(self._insist_s):
                while _next(error) is not _Next.GIVE_UP:
                    await asyncio.sleep(pause_s * random.uniform(0.5, 1))
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                    await attempt.prepare(error)
                    answers = await attempt.send()
                    failure = _first_error(answers[: attempt.needed])
                    if failure is None:
                        return answers
                    error = failure
        except TimeoutError as timeout:
            raise attempt.give_up(given_up) from timeout
        raise attempt.give_up(given_up) from error


class _Attempt:
    """The tries of one call: where the next one goes, and what is known of those before."""

    def __init__(
        self,
        nodes: Nodes,
        partition: int,
        packed: tuple[bytes, ...],
        *,
        needed: int | None = None,
        confirming: bool = False,
    ) -> None:
        self.needed = needed or len(packed)
        self._nodes = nodes
        self._partition = partition
        self._packed = packed
        self._confirming = confirming
        self._elsewhere: Wire | None = None
        self._reason = "no answer"
        self._unsure = False

    def give_up(self, given_up: GivenUp) -> Retryable:
        return given_up(reason=self._reason, unsure=self._unsure)

    async def send(self) -> list[Answer]:
        pending, self._unsure = self._unsure, True
        if self._elsewhere:
            _, *answers = await self._elsewhere.call_together(pack(b"ASKING"), *self._packed)
            self._elsewhere = None
        else:
            answers = await self._wire().call_together(*self._packed)
        self._unsure = pending
        self.learn(answers)
        return answers

    def learn(self, answers: Sequence[Answer]) -> None:
        """What a try leaves behind: why it failed, and whether the server may have done it."""
        if error := _first_error(answers):
            self._reason = _words(error)
        self._unsure |= any(isinstance(answer, WireLost) and answer.sent for answer in answers)

    async def prepare(self, error: Exception) -> None:
        """Puts right what the error says is wrong, as far as it can be. A failure shows at the next try."""
        try:
            match _next(error):
                case _Next.LOAD_SCRIPTS:
                    await self._wire().call_together(
                        *[pack(b"SCRIPT", b"LOAD", script.text) for script in SCRIPTS]
                    )
                case _Next.REFRESH if isinstance(error, AskError):
                    self._elsewhere = self._nodes.wire_at(str(cast(Any, error).host), error.port)
                case _Next.REFRESH:
                    await self._nodes.refresh()
                case _Next.AGAIN if isinstance(error, WireLost):
                    # In a cluster a lost node may be gone for good.
                    await self._nodes.refresh()
                case _:
                    pass
        except (RedisError, OSError) as failure:
            self._reason = _words(failure)

    def _wire(self) -> Wire:
        return (self._nodes.confirming_wire if self._confirming else self._nodes.wire)(self._partition)


_NEXT: dict[type[Exception], _Next] = {
    WireLost: _Next.AGAIN,
    TryAgainError: _Next.AGAIN,
    ClusterDownError: _Next.REFRESH,
    MasterDownError: _Next.REFRESH,
    ReadOnlyError: _Next.REFRESH,
    MovedError: _Next.REFRESH,
    AskError: _Next.REFRESH,
    NoScriptError: _Next.LOAD_SCRIPTS,
    OutOfMemoryError: _Next.GIVE_UP,
}
"""By redis-py's class for the error."""

_NEXT_BY_WORD = {
    "NOREPLICAS": _Next.AGAIN,
    "BUSY": _Next.AGAIN,
    "UNBLOCKED": _Next.AGAIN,
    "MISCONF": _Next.GIVE_UP,
}
"""By the error's first word, where redis-py has no class for it."""


def _next(error: Exception) -> _Next:
    """Raises for an error that no repetition and no other server cures."""
    step = _NEXT.get(type(error)) or _NEXT_BY_WORD.get(str(error).partition(" ")[0])
    if step:
        return step
    if isinstance(error, NoPermissionError):
        raise StoreRefused(f"the store's user may not do what Signoff needs: {error}") from error
    if isinstance(error, ResponseError):
        raise StoreDamaged(key="something", found=str(error)[:200]) from error
    raise error


def _first_error(answers: Sequence[Answer]) -> Exception | None:
    for answer in answers:
        if isinstance(answer, Exception):
            return answer
    return None


def _words(error: Exception) -> str:
    """Reasons end up in front of people: the first words say which kind it is."""
    return str(error)[:120]
