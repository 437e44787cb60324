"""One connection that many callers share: what is ready in the same turn of the loop travels together.

Owns the pairing of commands with replies. A caller that gives up leaves its place in the line, so that its reply
goes nowhere and everybody else's stays theirs. Knows nothing of scripts, partitions or retries. Reconnects with the
next call after a loss; whether to repeat a call is for the caller to say.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias, cast

from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from gateway.errors import SignoffError, StoreUnreachable
from gateway.store.command import Reply


class WireLost(Exception):
    """The connection ended before the reply. With `sent`, the server may have done what it was told."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


Answer: TypeAlias = "Reply | ResponseError | WireLost | SignoffError"
_Place: TypeAlias = "asyncio.Future[Answer]"


class Link(Protocol):
    """What is used of redis-py's connections: dialled and logged in by them, framed and read by them."""

    async def connect(self) -> None: ...

    async def disconnect(self, *, nowait: bool) -> None: ...

    async def send_packed_command(self, command: bytes, *, check_health: bool) -> None: ...

    async def read_response(self, **how: Any) -> Any: ...


class Wire:
    def __init__(self, dial: Callable[[], Awaitable[Link]], *, patience_s: float) -> None:
        """`dial` gives a connection ready for use. A server silent for `patience_s` counts as gone."""
        self._dial = dial
        self._patience_s = patience_s
        self._unsent: list[tuple[bytes, _Place]] = []
        self._sent: deque[tuple[_Place, float]] = deque()
        self._ready = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._closed = False

    async def call(self, packed: bytes) -> Reply:
        """Raises redis-py's ResponseError for what the server refused, WireLost without an answer."""
        answer = await self._place(packed)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def call_together(self, *packed: bytes) -> list[Answer]:
        """Commands that no other may come between; each answer is a reply or an error."""
        places = [self._place(command) for command in packed]
        return [await place for place in places]

    async def close(self) -> None:
        self._closed = True
        life = self._life
        if life:
            life.cancel()
            await asyncio.wait({life})

    def _place(self, packed: bytes) -> _Place:
        place: _Place = asyncio.get_running_loop().create_future()
        if self._closed:
            place.set_result(StoreUnreachable(reason="this process closed its store", unsure=True))
            return place
        if self._life is None:
            self._life = asyncio.create_task(self._live(), name="store wire")
        self._unsent.append((packed, place))
        self._ready.set()
        return place

    async def _live(self) -> None:
        """From dialling to the loss of one connection."""
        reason: Exception = WireLost("the connection was closed", sent=False)
        try:
            async with asyncio.timeout(self._patience_s):
                link = await self._dial()
            reason = await self._use(link)
        except SignoffError as refused:
            reason = refused
        except (RedisError, OSError) as error:
            reason = error
        finally:
            # Without an await in between: whoever calls after this line starts a new life.
            self._life = None
            self._fail_all(reason)

    async def _use(self, link: Link) -> Exception:
        """Writes, reads and watches until one of them ends. Returns why."""
        parts = {_part(self._write(link)), _part(self._read(link)), _part(self._watch())}
        try:
            ended, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await link.disconnect(nowait=True)
        return next(error for part in ended if isinstance(error := part.exception(), Exception))

    async def _write(self, link: Link) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            batch, self._unsent = self._unsent, []
            now = asyncio.get_running_loop().time()
            self._sent.extend([(place, now) for _, place in batch])
            await link.send_packed_command(b"".join([packed for packed, _ in batch]), check_health=False)

    async def _read(self, link: Link) -> None:
        while True:
            answer = await _next_answer(link)
            place, _ = self._sent.popleft()
            _settle(place, answer)
            if isinstance(answer, ReadOnlyError):
                # Its primary is another server now, which only a new dialling finds.
                raise WireLost("the server became a replica", sent=True)

    async def _watch(self) -> None:
        """One clock for all calls, because a timer for each costs as much as the call."""
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._patience_s / 4)
            if self._sent and now() - self._sent[0][1] > self._patience_s:
                raise WireLost(f"no answer within {self._patience_s:g} s", sent=True)

    def _fail_all(self, reason: Exception) -> None:
        sent, unsent = self._sent, self._unsent
        self._sent, self._unsent = deque(), []
        for place, _ in sent:
            _settle(place, WireLost(_words(reason), sent=True))
        for _, place in unsent:
            _settle(
                place, reason if isinstance(reason, SignoffError) else WireLost(_words(reason), sent=False)
            )


def _part(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work, name="store wire's part")


def _settle(place: _Place, answer: Answer) -> None:
    # Done already means that its caller was cancelled.
    if not place.done():
        place.set_result(answer)


def _words(reason: Exception) -> str:
    return str(reason) or type(reason).__name__


async def _next_answer(link: Link) -> Answer:
    try:
        # Infinite: the default is the socket's time-out, which `_watch` does for all at once.
        return cast(Reply, await link.read_response(disable_decoding=True, timeout=float("inf")))
    except ResponseError as refused:
        return refused
