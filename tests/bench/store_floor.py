"""What a commit costs through our client, against the same bytes by bare sockets: `python -m tests.bench.store_floor`.

Both in the same repetition on the same server, because absolute figures move from run to run. The bare client packs
nothing and reads nothing but the count of replies: it is the floor, not a client.
"""

from __future__ import annotations

import argparse
import asyncio
import selectors
import socket
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice

from gateway.clock import SystemClock
from gateway.ports import Append, Commit, DocumentId, IndexPut, Wake, Write
from gateway.store.commit import pack_commit
from gateway.store.opening import open_store
from gateway.store.redis import RedisStore
from gateway.store.scripts import COMMIT
from tests.support.valkey import Valkey, running_valkey

BODY = b"x" * 2_000
COMMITS = 3_000
TASKS = 64


def commits(name: str, count: int) -> list[Commit]:
    """As an ask is opened: run and ask written, a row, an index entry, a wake."""
    return [_open_ask(name, n) for n in range(count)]


def _open_ask(name: str, n: int) -> Commit:
    partition = n % 64
    run, ask = (DocumentId(f"{kind}_{partition:02d}_{name}{n}") for kind in ("run", "a"))
    return Commit(
        partition=partition,
        operation=f"{name}{n}",
        keep_ms=900_000,
        writes=(Write(run, 0, BODY, loads=(ask,)), Write(ask, 0, BODY)),
        appends=(Append(DocumentId(f"s_{partition:02d}_{name}"), (BODY[:200],)),),
        rows=(BODY[:300],),
        index=(IndexPut("open", ask, n),),
        work=(Wake("runs:bench", run),),
    )


async def by_store(store: RedisStore, work: list[Commit], tasks: int) -> float:
    queue = iter(work)

    async def one() -> None:
        for commit in queue:
            await store.commit(commit)

    return await _rate(lambda: asyncio.gather(*[one() for _ in range(tasks)]), len(work))


def by_sockets(server: Valkey, work: list[Commit], tasks: int) -> float:
    """Each connection keeps its share of the tasks in flight, and sends the next when one is answered."""
    packed = iter([pack_commit(commit, offset_ms=0) for commit in work])
    connections = [_connect(server) for _ in range(min(tasks, 8))]
    waiting = selectors.DefaultSelector()
    began = time.perf_counter()
    for connection in connections:
        waiting.register(connection, selectors.EVENT_READ)
        _send(connection, packed, tasks // len(connections))
    left = len(work)
    while left:
        for key, _ in waiting.select():
            connection: socket.socket = key.fileobj  # type: ignore[assignment]
            answered = connection.recv(65_536).count(b"\r\nok\r\n")
            left -= answered
            _send(connection, packed, answered)
    took = time.perf_counter() - began
    waiting.close()
    for connection in connections:
        connection.close()
    return len(work) / took


def _send(connection: socket.socket, packed: Iterator[bytes], count: int) -> None:
    if batch := b"".join(islice(packed, count)):
        connection.sendall(batch)


def _connect(server: Valkey) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(server.socket))
    return connection


async def _rate(work: Callable[[], Awaitable[object]], count: int) -> float:
    began = time.perf_counter()
    await work()
    return count / (time.perf_counter() - began)


async def repetition(server: Valkey, number: int, lanes: int) -> dict[str, float]:
    server.client.flushall()
    server.client.script_load(COMMIT.text)
    store = await open_store(server.url, clock=SystemClock(), lanes=lanes)
    figures: dict[str, float] = {}
    for tasks, count in ((1, COMMITS // 3), (TASKS, COMMITS)):
        figures[f"bare, {tasks}"] = by_sockets(server, commits(f"b{number}t{tasks}", count), tasks)
        figures[f"store, {tasks}"] = await by_store(store, commits(f"s{number}t{tasks}", count), tasks)
    await store.close()
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=5)
    options.add_argument("--lanes", type=int, nargs="+", default=[1, 2, 4])
    options.add_argument("--fsync", choices=("always", "everysec"), default="always")
    chosen = options.parse_args()
    with running_valkey(appendfsync=chosen.fsync) as server:
        for lanes in chosen.lanes:
            runs = [asyncio.run(repetition(server, n, lanes)) for n in range(chosen.repetitions)]
            for tasks in (1, TASKS):
                bare, ours = (
                    statistics.median(run[f"{name}, {tasks}"] for run in runs) for name in ("bare", "store")
                )
                ratio = statistics.median(run[f"store, {tasks}"] / run[f"bare, {tasks}"] for run in runs)
                print(  # noqa: T201
                    f"fsync {chosen.fsync}, {lanes} lanes, {tasks:2} at once:"
                    f" bare {bare:6.0f}/s, store {ours:6.0f}/s, ratio {ratio:.2f}"
                )


if __name__ == "__main__":
    main()
