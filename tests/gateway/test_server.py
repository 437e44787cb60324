"""The HTTP server over real HTTP: alive, ready, bounded, and silent about what went wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
import pytest
from aiohttp import web

from gateway import server
from gateway.errors import StoreUnreachable
from gateway.server import BODY_LIMIT, HEADER_LIMIT, CannotListen, Checks, listening, make_server

CANARY = "c4n4ry-3f9a"
READY = {"ready": True, "store": True, "worker": True, "oldest_due_ms": None}


async def answers() -> int:
    return 1


async def none_due() -> int | None:
    return None


async def unreachable() -> int:
    raise StoreUnreachable(reason=CANARY)


async def breaks() -> int:
    raise RuntimeError(CANARY)


async def hangs() -> int:
    return await asyncio.get_running_loop().create_future()


def checks(
    *,
    store: Callable[[], Awaitable[object]] = answers,
    worker: Callable[[], bool] = lambda: True,
    oldest_due_ms: Callable[[], Awaitable[int | None]] = none_due,
) -> Checks:
    return Checks(store=store, worker=worker, oldest_due_ms=oldest_due_ms)


@asynccontextmanager
async def serving(
    asked: Checks | None = None, routes: Sequence[web.AbstractRouteDef] = ()
) -> AsyncIterator[aiohttp.ClientSession]:
    app = make_server(asked or checks(), routes)
    async with (
        listening(app, "127.0.0.1", 0) as (host, port),
        aiohttp.ClientSession(base_url=f"http://{host}:{port}") as client,
    ):
        yield client


async def readiness(asked: Checks) -> tuple[int, dict[str, object]]:
    async with serving(asked) as client, client.get("/readyz") as answer:
        assert CANARY not in await answer.text()
        return answer.status, await answer.json()


class TestAlive:
    async def test_without_asking_anybody(self):
        asked = checks(store=hangs, worker=lambda: False, oldest_due_ms=hangs)
        async with serving(asked) as client, client.get("/healthz") as answer:
            assert (answer.status, await answer.json()) == (200, {"alive": True})


class TestReady:
    async def test_if_the_store_answers_and_the_worker_lives(self):
        assert await readiness(checks()) == (200, READY)

    @pytest.mark.parametrize("store", [unreachable, breaks])
    async def test_not_without_the_store(self, store: Callable[[], Awaitable[object]]):
        status, told = await readiness(checks(store=store))
        assert (status, told) == (503, {**READY, "ready": False, "store": False})

    async def test_not_with_a_store_that_is_slow_and_says_so_soon(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(server, "PATIENCE_S", 0.02)
        status, told = await readiness(checks(store=hangs, oldest_due_ms=hangs))
        assert (status, told["store"], told["oldest_due_ms"]) == (503, False, None)

    def test_sooner_than_an_orchestrator_gives_up(self):
        assert server.PATIENCE_S < 1

    async def test_not_without_the_worker(self):
        status, told = await readiness(checks(worker=lambda: False))
        assert (status, told) == (503, {**READY, "ready": False, "worker": False})

    async def test_not_if_the_worker_cannot_be_asked(self):
        def broken() -> bool:
            raise RuntimeError(CANARY)

        status, told = await readiness(checks(worker=broken))
        assert (status, told["worker"]) == (503, False)

    async def test_with_a_full_queue_too(self):
        async def long() -> int | None:
            return 3_600_000

        assert await readiness(checks(oldest_due_ms=long)) == (200, {**READY, "oldest_due_ms": 3_600_000})

    async def test_with_a_queue_that_cannot_be_measured_too(self):
        assert await readiness(checks(oldest_due_ms=breaks)) == (200, READY)

    async def test_again_once_the_store_is_back(self):
        down = True

        async def store() -> int:
            return await (unreachable() if down else answers())

        async with serving(checks(store=store)) as client:
            async with client.get("/readyz") as answer:
                assert answer.status == 503
            down = False
            async with client.get("/readyz") as answer:
                assert answer.status == 200

    async def test_for_many_who_ask_at_once_asks_the_store_once(self):
        asked, go = 0, asyncio.Event()

        async def store() -> int:
            nonlocal asked
            asked += 1
            await go.wait()
            return 1

        async def probe(client: aiohttp.ClientSession) -> int:
            async with client.get("/readyz") as answer:
                return answer.status

        arrived = asyncio.Semaphore(0)

        async def count(request: web.Request) -> web.Response:
            arrived.release()
            return web.Response()

        async with serving(checks(store=store), [web.get("/count", count)]) as client:
            probes = [asyncio.create_task(probe(client)) for _ in range(20)]
            async with client.get("/count"):
                await arrived.acquire()
            go.set()
            assert set(await asyncio.gather(*probes)) == {200}
            assert asked <= 2, "those that came while it was being asked asked again"

    async def test_told_to_others_when_the_one_who_asked_first_hangs_up(self):
        asked, go = asyncio.Event(), asyncio.Event()

        async def store() -> int:
            asked.set()
            await go.wait()
            return 1

        async with serving(checks(store=store)) as client:
            first = asyncio.create_task(client.get("/readyz").__aenter__())
            await asked.wait()
            first.cancel()
            second = asyncio.create_task(client.get("/readyz").__aenter__())
            go.set()
            assert (await second).status == 200
            await asyncio.gather(first, return_exceptions=True)


async def swallow(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


async def fail(request: web.Request) -> web.Response:
    raise ValueError(CANARY)


class TestDoors:
    async def test_take_a_body_up_to_the_limit(self):
        async with serving(routes=[web.post("/door", swallow)]) as client:
            async with client.post("/door", data=BytesIO(b"x" * (BODY_LIMIT - 1))) as answer:
                assert (answer.status, await answer.text()) == (200, str(BODY_LIMIT - 1))
            async with client.post("/door", data=BytesIO(b"x" * (BODY_LIMIT + 1))) as answer:
                assert answer.status == 413

    async def test_refuse_a_body_that_does_not_say_how_long_it_is(self):
        async def endless() -> AsyncIterator[bytes]:
            # Hardly more than the limit: aiohttp waits seconds for the rest of much more.
            for _ in range(BODY_LIMIT // 65_536 + 1):
                yield b"x" * 65_536

        async with (
            serving(routes=[web.post("/door", swallow)]) as client,
            client.post("/door", data=endless()) as answer,
        ):
            assert answer.status == 413

    async def test_refuse_headers_and_lines_that_are_too_long(self):
        async with serving(routes=[web.get("/door", swallow)]) as client:
            async with client.get("/door", headers={"X-Long": "x" * (HEADER_LIMIT + 1)}) as answer:
                assert answer.status == 400
            async with client.get("/door", params={"q": "x" * (HEADER_LIMIT + 1)}) as answer:
                assert answer.status == 400

    async def test_that_fail_say_nothing_of_why(self, caplog: pytest.LogCaptureFixture):
        async with (
            serving(routes=[web.get("/door", fail)]) as client,
            client.get(f"/door?token={CANARY}") as answer,
        ):
            text = await answer.text()
        assert (answer.status, text) == (500, '{"error": "something failed on our side; try again"}')
        assert "request-failed" in caplog.messages
        assert CANARY not in " ".join(caplog.messages)

    async def test_that_refuse_are_left_as_they_are(self):
        async def refuse(request: web.Request) -> web.Response:
            raise web.HTTPConflict(text="taken")

        async with serving(routes=[web.get("/door", refuse)]) as client, client.get("/door") as answer:
            assert (answer.status, await answer.text()) == (409, "taken")

    async def test_that_are_not_there_are_not_found(self):
        async with serving() as client, client.get(f"/{CANARY}") as answer:
            assert answer.status == 404
            assert CANARY not in await answer.text()

    async def test_are_in_no_access_log(self, caplog: pytest.LogCaptureFixture):
        caplog.set_level("DEBUG")
        async with serving() as client, client.get(f"/healthz?token={CANARY}"):
            pass
        assert CANARY not in caplog.text


class TestListening:
    async def test_on_a_taken_address_is_refused_with_what_to_do(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(CannotListen, match=rf"127\.0\.0\.1:{port}; got: .*SIGNOFF_LISTEN"):
                async with listening(make_server(checks()), "127.0.0.1", port):
                    pass

    async def test_ends_with_its_context(self):
        async with listening(make_server(checks()), "127.0.0.1", 0) as (host, port):
            pass
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, port)
