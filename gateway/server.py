"""The process's HTTP server: whether it is alive, whether it is ready, and the limits that every door shares.

Owns `/healthz`, `/readyz`, the bound address and the bounds on what a client may send. What "ready" means is asked of
functions that come from outside; knows nothing of stores, workers or channels.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from gateway.errors import Terminal
from gateway.telemetry import logger

BODY_LIMIT = 1024 * 1024
HEADER_LIMIT = 8 * 1024
PATIENCE_S = 0.8
"""How long a check may take; an orchestrator's own limit is often one second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What `/readyz` asks. Each may raise; then that part is not ready."""

    store: Callable[[], Awaitable[object]]
    """Answers if the store does."""
    worker: Callable[[], bool]
    """Whether the loop that drives runs is alive."""
    oldest_due_ms: Callable[[], Awaitable[int | None]]
    """How long the oldest run that is due has waited; None: none is due. Told, not judged: a full queue is no reason to
    turn people's clicks away."""


class CannotListen(Terminal):
    """The address is taken, or is not this machine's."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"expected to listen on {host}:{port}; got: {reason}. Stop what listens there, or set SIGNOFF_LISTEN"
        )


def make_server(checks: Checks, routes: Iterable[web.AbstractRouteDef] = ()) -> web.Application:
    """The application: health and readiness, and the channels' routes."""
    readiness = _Readiness(checks)
    app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_plain])
    app.add_routes([web.get("/healthz", _healthz), web.get("/readyz", readiness.answer), *routes])
    return app


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncGenerator[tuple[str, int], None]:
    """Serve while the context lasts; gives the address that was bound, with the real port. Raises CannotListen."""
    runner = web.AppRunner(
        app,
        access_log=None,  # it would hold links, and links hold tokens
        handle_signals=False,
        keepalive_timeout=30,
        shutdown_timeout=5,
        max_line_size=HEADER_LIMIT,
        max_field_size=HEADER_LIMIT,
    )
    await runner.setup()
    try:
        await _bind(runner, host, port)
        bound: tuple[str, int] = runner.addresses[0][:2]
        logger.info("listening", address=f"{bound[0]}:{bound[1]}")
        yield bound
    finally:
        await runner.cleanup()


async def _bind(runner: web.AppRunner, host: str, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise CannotListen(host, port, error.strerror or type(error).__name__) from error


async def _healthz(request: web.Request) -> web.Response:
    return web.json_response({"alive": True})


@dataclass(slots=True)
class _Readiness:
    """Asks the checks; all who ask while it does get the same answer, so that probes put no load on the store."""

    checks: Checks
    _asking: asyncio.Task[dict[str, object]] | None = field(default=None, init=False)

    async def answer(self, request: web.Request) -> web.Response:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        told = await asyncio.shield(self._asking)
        return web.json_response(told, status=200 if told["ready"] else 503)

    async def _ask(self) -> dict[str, object]:
        store, due = await asyncio.gather(
            _within(self.checks.store()), _within(self.checks.oldest_due_ms()), return_exceptions=True
        )
        parts = {"store": not isinstance(store, BaseException), "worker": _yes(self.checks.worker)}
        oldest = None if isinstance(due, BaseException) else due
        return {"ready": all(parts.values()), **parts, "oldest_due_ms": oldest}


async def _within(check: Awaitable[object]) -> object:
    async with asyncio.timeout(PATIENCE_S):
        return await check


def _yes(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception as error:
        logger.error("readiness", problem=type(error).__name__, exc_info=error)
        return False


@web.middleware
async def _plain(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """An unforeseen failure is logged with its kind and place, and answered without them."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception as error:
        logger.error("request-failed", problem=type(error).__name__, exc_info=error)
        return web.json_response({"error": "something failed on our side; try again"}, status=500)
