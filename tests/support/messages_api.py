"""A Messages API on loopback: it refuses what the real one refuses, answers what a test scripted, and remembers.

async with MessagesApi() as api:
    api.will(message("Hello."))
    model = Claude(client=AsyncAnthropic(base_url=api.url, api_key=api.key))
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.support.messages_rules import Refusal, check_body, check_headers, invalid


@dataclass(frozen=True)
class Received:
    headers: dict[str, str]
    body: Any


Answer = Callable[[web.Request, str], Awaitable[web.StreamResponse]]
"""Gets the request and its id."""


def message(*content: str | dict[str, Any], stop: str | None = None, **usage: int) -> Answer:
    """A reply; a string is a text block. It stops for `tool_use` if it calls a tool, else for `end_turn`."""
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    calls = any(block["type"] == "tool_use" for block in blocks)

    async def answer(request: web.Request, request_id: str) -> web.StreamResponse:
        body: dict[str, Any] = {
            "id": f"msg_{request_id}",
            "type": "message",
            "role": "assistant",
            "model": json.loads(await request.text())["model"],
            "content": blocks,
            "stop_reason": stop or ("tool_use" if calls else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5, **usage},
        }
        return web.json_response(body, headers={"request-id": request_id})

    return answer


def tool_use(id_: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def failure(status: int, type_: str, text: str, **headers: str) -> Answer:
    """An error in the API's envelope. Header names are written with underscores: `retry_after="7"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(request: web.Request, request_id: str) -> web.StreamResponse:
        return _error(status, type_, text, request_id, named)

    return answer


def rate_limited(**headers: str) -> Answer:
    return failure(429, "rate_limit_error", "This request would exceed your rate limit.", **headers)


def overloaded(**headers: str) -> Answer:
    return failure(529, "overloaded_error", "Overloaded", **headers)


def broken(**headers: str) -> Answer:
    return failure(500, "api_error", "Internal server error", **headers)


def raw(text: str, *, status: int = 200, content_type: str = "text/html") -> Answer:
    """What a proxy in between may answer."""

    async def answer(request: web.Request, request_id: str) -> web.StreamResponse:
        return web.Response(text=text, status=status, content_type=content_type)

    return answer


async def never(request: web.Request, request_id: str) -> web.StreamResponse:
    """Takes the request and does not answer it, for as long as anybody waits."""
    return await asyncio.get_running_loop().create_future()


async def dropped(request: web.Request, request_id: str) -> web.StreamResponse:
    """Takes the request and hangs up."""
    assert request.transport is not None
    request.transport.abort()
    return await asyncio.get_running_loop().create_future()


@dataclass
class MessagesApi:
    """The server. `received` holds every request that reached it, refused ones too."""

    key: str = "test-key"
    url: str = ""
    received: list[Received] = field(default_factory=list[Received])
    answers: deque[Answer] = field(default_factory=deque[Answer])

    def will(self, *answers: Answer) -> None:
        """Answer the next accepted requests so, in this order."""
        self.answers.extend(answers)

    @property
    def body(self) -> dict[str, Any]:
        """The last request's."""
        return self.received[-1].body

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=32 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        request_id = f"req_{len(self.received) + 1:04}"
        try:
            await self._accept(request)
        except Refusal as refusal:
            return _error(refusal.status, refusal.type, refusal.message, request_id, {})
        if not self.answers:
            return _error(500, "api_error", "the test scripted no answer for this request", request_id, {})
        return await self.answers.popleft()(request, request_id)

    async def _accept(self, request: web.Request) -> None:
        if request.path != "/v1/messages":
            raise Refusal(404, "not_found_error", "Not found")
        if request.method != "POST":
            raise Refusal(405, "invalid_request_error", "Method Not Allowed")
        try:
            body = json.loads(await request.text())
        except web.HTTPRequestEntityTooLarge:
            raise Refusal(413, "request_too_large", "Request exceeds the maximum size") from None
        except ValueError:
            raise invalid("The request body is not valid JSON") from None
        self.received.append(Received({name.lower(): text for name, text in request.headers.items()}, body))
        check_headers(request.headers, self.key)
        check_body(body)


def _error(status: int, type_: str, text: str, request_id: str, headers: dict[str, str]) -> web.Response:
    body = {"type": "error", "error": {"type": type_, "message": text}, "request_id": request_id}
    return web.json_response(body, status=status, headers={"request-id": request_id, **headers})
