"""Throw-away Valkey servers: real ones, started in tens of milliseconds, gone with the process that started them.

Owns their processes and what tests want to see of their keys. Not the embedded store: that is under test.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
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
        self.settings = {
            **DEFAULTS,
            "dir": str(folder),
            "port": str(port),
            "unixsocket": str(self.socket),
            "logfile": str(folder / "log"),
            **(settings or {}),
        }
        self.client: Any = Redis(unix_socket_path=str(self.socket), protocol=2)

    def start(self) -> Valkey:
        parts = [part for name, value in self.settings.items() for part in (f"--{name}", value)]
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

    def pause(self) -> None:
        """It stays connected and says nothing."""
        if self.process:
            self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGCONT)

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
            bus = servers[0].settings["cluster-port"]
            server.client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port, bus)
        for server in servers:
            _wait_for_cluster(server, nodes)
        yield servers


@contextlib.contextmanager
def running_sentinel(primary: Valkey, *, service: str) -> Iterator[Any]:
    """A sentinel that may decide alone; gives a client to it. `primary` needs a port."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-test-"))
    port = free_port()
    configuration = folder / "sentinel.conf"
    configuration.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\nlogfile {folder}/log\n"
        f"sentinel monitor {service} 127.0.0.1 {primary.port} 1\n"
        f"sentinel down-after-milliseconds {service} 500\n"
    )
    process = guarded([str(find_binary()), str(configuration), "--sentinel"])
    client: Any = Redis(port=port, protocol=2)
    try:
        _wait_for_answer(client)
        yield client
    finally:
        client.close()
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_answer(client: Any) -> None:
    deadline = time.monotonic() + START_S
    while True:
        with contextlib.suppress(RedisError):
            if client.ping():
                return
        assert time.monotonic() < deadline, "no answer"
        time.sleep(0.005)


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
