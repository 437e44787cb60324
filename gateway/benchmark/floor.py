"""What the store alone allows: bare sockets send commits that are packed already, and count the answers.

Owns the floor. As many commits as a cycle of Signoff makes count as a cycle; nothing is decided, read or checked here.
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from gateway.ports import Append, Commit, DocumentId, IndexPut, Wake, Write
from gateway.store.commit import pack_commit

BODY = b"x" * 1_400
"""About what a run and an ask take."""
CONNECTIONS = 8
_serial = itertools.count()


def floor(path: Path, *, tasks: int, seconds: float) -> float:
    """Commits a second with so many in flight."""
    packed = [pack_commit(_open_ask(n), offset_ms=0) for n in range(int(40_000 * seconds) + 100)]
    with ExitStack() as opened, selectors.DefaultSelector() as waiting:
        for _ in range(min(tasks, CONNECTIONS)):
            connection = opened.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
            connection.connect(str(path))
            waiting.register(connection, selectors.EVENT_READ)
        return _rate(waiting, iter(packed), tasks, seconds)


def _rate(waiting: selectors.BaseSelector, packed: Iterator[bytes], tasks: int, seconds: float) -> float:
    connections = [key.fileobj for key in waiting.get_map().values()]
    began = time.perf_counter()
    in_flight = sum(_send(each, packed, tasks // len(connections)) for each in connections)
    done = 0
    while in_flight:
        for key, _ in waiting.select():
            answered = _receive(key.fileobj)
            done, in_flight = done + answered, in_flight - answered
            if time.perf_counter() - began < seconds:
                in_flight += _send(key.fileobj, packed, answered)
    return done / (time.perf_counter() - began)


def _send(connection: object, packed: Iterator[bytes], count: int) -> int:
    batch = list(itertools.islice(packed, count))
    if batch and isinstance(connection, socket.socket):
        connection.sendall(b"".join(batch))
    return len(batch)


def _receive(connection: object) -> int:
    if not isinstance(connection, socket.socket):
        return 0
    received = connection.recv(65_536)
    if not received:
        raise ConnectionError("the store closed a connection")
    return received.count(b"\r\nok\r\n")


def _open_ask(n: int) -> Commit:
    """As an ask is opened: run and ask written, a message, a row, an index entry, a wake."""
    name, partition = f"floor{n}x{next(_serial)}x{time.time_ns()}", n % 64
    run, ask = (DocumentId(f"{kind}_{partition:02d}_{name}") for kind in ("run", "a"))
    return Commit(
        partition=partition,
        operation=name,
        keep_ms=900_000,
        writes=(Write(run, 0, BODY, loads=(ask,)), Write(ask, 0, BODY)),
        appends=(Append(DocumentId(f"s_{partition:02d}_{name}"), (BODY[:200],)),),
        rows=(BODY[:300],),
        index=(IndexPut("floor", ask, n),),
        work=(Wake("runs:floor", run),),
    )
