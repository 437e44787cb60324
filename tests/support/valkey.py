"""Throw-away Valkey servers: real ones, started in tens of milliseconds, gone with the process that started them.

Owns their processes and what tests want to see of their keys. Not the embedded store: that is under test.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from gateway.store.binary import find_binary
from gateway.store.guard import guarded

START_S = 20.0
DEFAULTS = {
    "save": "",
    "appendonly": "yes",
    "appendfsync": "no",
    "loglevel": "warning",
    "repl-diskless-sync-delay": "0",
}
"""Passes the checks of the start, but spares the disk: most tests do not kill the server."""


class Valkey:
    """A running server. Speaks on a Unix socket, and on a loopback port if made with one."""

    def __init__(self, folder: Path, *, port: int = 0, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.port = port
        self.socket = folder / "s"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = {
            **DEFAULTS,
            "dir": str(folder),
            "port": str(port),
            "unixsocket": str(self.socket),
            "logfile": str(folder / "log"),
            **(settings or {}),
        }
        self.client: Any = Redis(
            unix_socket_path=str(self.socket), protocol=2, single_connection_client=False
        )

    def start(self) -> Valkey:
        parts = [part for name, value in self._settings.items() for part in (f"--{name}", value)]
        self.process = guarded([str(find_binary()), *parts])
        deadline = time.monotonic() + START_S
        while not self.answers():
            log = self.folder / "log"
            assert self.process.poll() is None, f"the server did not start: {log.read_text()[-500:]}"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.005)
        return self

    def answers(self) -> bool:
        try:
            return self.client.ping()
        except RedisError:
            return False

    def kill(self) -> None:
        """As kill -9 does; `start` brings it back with what is on disk."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        self.kill()
        self.client.close()

    def dump(self) -> dict[bytes, tuple[bytes, int]]:
        """Every key with its value and when it expires: equal before and after means that nothing happened."""
        pipeline = self.client.pipeline(transaction=False)
        keys: list[bytes] = sorted(self.client.scan_iter(count=1000))
        for key in keys:
            pipeline.dump(key)
            pipeline.pexpiretime(key)
        values = pipeline.execute()
        return {key: (values[2 * n], values[2 * n + 1]) for n, key in enumerate(keys)}


@contextlib.contextmanager
def running_valkey(*, tcp: bool = False, **settings: str) -> Iterator[Valkey]:
    """Settings are Valkey's, with `_` for `-`: `running_valkey(maxmemory_policy="allkeys-lru")`."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-test-"))
    named = {name.replace("_", "-"): value for name, value in settings.items()}
    server = Valkey(folder, port=free_port() if tcp else 0, settings=named)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_cluster(*, nodes: int = 1) -> Iterator[list[Valkey]]:
    """All slots assigned, evenly, and every node knows every other."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(
                running_valkey(
                    tcp=True, cluster_enabled="yes", cluster_port=str(free_port()), bind="127.0.0.1"
                )
            )
            for _ in range(nodes)
        ]
        for place, server in enumerate(servers):
            first, end = 16384 * place // nodes, 16384 * (place + 1) // nodes
            server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            server.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
        for server in servers[1:]:
            bus = servers[0]._settings["cluster-port"]
            server.client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port, bus)
        for server in servers:
            _wait_for_cluster(server, nodes)
        yield servers


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_cluster(server: Valkey, nodes: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        info = server.client.execute_command("CLUSTER", "INFO")
        text = (
            info
            if isinstance(info, dict)
            else dict(line.split(":", 1) for line in info.decode().split() if ":" in line)
        )
        if text["cluster_state"] == "ok" and int(text["cluster_known_nodes"]) == nodes:
            return
        assert time.monotonic() < deadline, f"the cluster does not form: {text}"
        time.sleep(0.01)
