"""The store that comes along: a Valkey server of our own, started from a wheel, alive as long as this process.

Owns the server's life: lock, start, supervision, stop. The data folder belongs to one server at a time, which holds
its lock itself, so that the folder is free only once that server is gone. Must not know what is stored. Not the
wheel's own life cycle: that keeps nothing over a restart, and leaves servers behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from gateway.errors import StoreBusy, StoreRefused
from gateway.store.binary import find_binary
from gateway.store.guard import guarded
from gateway.store.live import answers, record_socket, recorded_socket, shut_down
from gateway.telemetry import logger

_LOCK_PATIENCE_S = 2.0
_START_PATIENCE_S = 60.0
"""Long, because a large append-only file is read before the first answer."""
_STOP_PATIENCE_S = 10.0
_STEP_S = 0.005
_WATCH_S = 0.1
_LONGEST_PAUSE_S = 5.0
_SOCKET_FOLDER = "signoff-"
_LONGEST_TEMPORARY = 80


class EmbeddedServer:
    """Made by `start_embedded`. `ready` is False while the server is down; `watch` brings it back."""

    def __init__(self, *, folder: Path, lock: int, socket: Path) -> None:
        self._folder = folder
        self._lock = lock
        self._socket = socket
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    @property
    def url(self) -> str:
        """The same for the server's whole life, restarts included."""
        return f"unix://{self._socket}"

    @property
    def ready(self) -> bool:
        return self._process is not None and self._process.poll() is None and answers(self._socket)

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process else None

    def launch(self) -> None:
        """Starts the server and returns when it answers. Raises StoreRefused with the server's own last words."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                "start the embedded store from the main thread: the server dies with its starting thread"
            )
        command = [str(find_binary()), *_settings(self._folder, self._socket)]
        self._process = guarded(command, keep_open=self._lock)
        deadline = time.monotonic() + _START_PATIENCE_S
        while not answers(self._socket):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                self._process.wait()
                raise StoreRefused(f"the embedded store did not start: {_last_words(self._folder)}")
            time.sleep(_STEP_S)

    async def watch(self) -> None:
        """Starts the server again whenever it exits, as it does when the disk is full. Runs until cancelled."""
        pause_s = _WATCH_S
        while True:
            await asyncio.sleep(pause_s)
            if self._stopping or self._process is None or self._process.poll() is None:
                pause_s = _WATCH_S
                continue
            logger.error("store-exited", code=str(self._process.returncode))
            try:
                self.launch()
                logger.info("store-back")
            except StoreRefused as error:
                logger.error("store-not-back", exc_info=error)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def stop(self) -> None:
        """Lets the server finish what it has, then frees the folder. Every acknowledged commit is on disk before."""
        self._stopping = True
        if self._process and self._process.poll() is None:
            shut_down(self._socket)
            try:
                self._process.wait(_STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._socket.parent, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def start_embedded(folder: Path) -> EmbeddedServer:
    """Raises StoreBusy if another process owns the folder, StoreRefused where no server can be started."""
    find_binary()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _locked(folder / "lock")
    try:
        server = EmbeddedServer(folder=folder, lock=lock, socket=_new_socket(folder))
        server.launch()
    except BaseException:
        os.close(lock)
        raise
    return server


def _locked(path: Path) -> int:
    """The lock's descriptor. Waits a little: an owner that was killed takes its server along within 0.1 s."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError as taken:
            if time.monotonic() > deadline:
                os.close(lock)
                raise StoreBusy(
                    f"another Signoff process owns {path.parent}: stop it, give this one another data folder, or let it"
                    " join by that process's store URL"
                ) from taken
            time.sleep(_STEP_S)


def _new_socket(folder: Path) -> Path:
    """In a short folder of its own: the kernel takes no socket path of 108 bytes or more."""
    before = recorded_socket(folder)
    if before and before.parent.name.startswith(_SOCKET_FOLDER):
        shutil.rmtree(before.parent, ignore_errors=True)
    socket = Path(tempfile.mkdtemp(prefix=_SOCKET_FOLDER, dir=_short_temporary())) / "s"
    record_socket(folder, socket)
    return socket


def _short_temporary() -> str:
    temporary = tempfile.gettempdir()
    return temporary if len(os.fsencode(temporary)) <= _LONGEST_TEMPORARY else "/tmp"  # noqa: S108 - mkdtemp makes a folder there that is ours alone


def _settings(folder: Path, socket: Path) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "logfile": str(folder / "store.log"),
        "loglevel": "warning",
        "appendonly": "yes",
        "appendfsync": "always",
        # A failed snapshot would refuse all writes; the append-only file is the one truth.
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [part for name, value in settings.items() for part in (f"--{name}", value)]


def _last_words(folder: Path) -> str:
    try:
        lines = (folder / "store.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        return f"it left no log in {folder}"
    return lines[-1] if lines else f"its log in {folder} is empty"
