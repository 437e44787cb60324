"""The running embedded server, as others find it: by the socket that its owner recorded in the data folder.

Owns that record and the few words spoken to the server itself. Knows nothing of how it was started.
"""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

_RECORD = "socket"
_ANSWER_S = 1.0


def find_live(folder: Path) -> str | None:
    """The URL of the server that owns this data folder; None if nobody does."""
    path = recorded_socket(folder)
    return f"unix://{path}" if path and answers(path) else None


def record_socket(folder: Path, path: Path) -> None:
    (folder / _RECORD).write_text(str(path))


def recorded_socket(folder: Path) -> Path | None:
    try:
        recorded = (folder / _RECORD).read_text()
    except OSError:
        return None
    return Path(recorded) if recorded else None


def answers(path: Path) -> bool:
    """False also while the server is still reading its file: it refuses PING with LOADING then."""
    try:
        return _say(path, b"PING\r\n") == b"+PONG\r\n"
    except OSError:
        return False


def shut_down(path: Path) -> None:
    """The server closes the connection in place of an answer."""
    with contextlib.suppress(OSError):
        _say(path, b"SHUTDOWN\r\n")


def _say(path: Path, words: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(str(path))
        connection.sendall(words)
        return connection.recv(64)
