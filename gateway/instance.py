"""What identifies this process, and whether another one is surely gone.

Owns the id and the judgment. `known_gone` is what lets a card say that running again is safe, so whatever it cannot
tell is "no".
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class _Process:
    """A process and the only place where its number means anything."""

    host: str
    boot: str
    namespace: str
    pid: str
    started: str


def this_instance() -> str:
    """The id of this process: the same for as long as it lives, and never another's."""
    pid = os.getpid()
    process = _Process(socket.gethostname(), _boot(), _namespace(), str(pid), _started(pid) or "")
    return SEPARATOR.join(part.replace(SEPARATOR, "-") for part in astuple(process))


def known_gone(instance: str) -> bool:
    """Whether that process surely runs no more. False is "cannot tell" as well as "it lives"."""
    other, here = _parse(instance), _parse(this_instance())
    if other is None or here is None:
        return False
    if (other.host, other.boot, other.namespace) != (here.host, here.boot, here.namespace):
        return False
    return _is_gone(int(other.pid), other.started)


def _parse(instance: str) -> _Process | None:
    parts = instance.split(SEPARATOR)
    if len(parts) != 5 or not all(parts) or not (parts[3].isascii() and parts[3].isdigit()):
        return None
    return _Process(*parts)


def _is_gone(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # somebody else's process, or no process number at all
    now = _started(pid)
    return now is not None and (now.replace(SEPARATOR, "-") != started or _is_dead(pid))


# --- Linux ------------------------------------------------------------------------------------------------------
# https://www.kernel.org/doc/html/latest/filesystems/proc.html


def _boot() -> str:
    if sys.platform != "linux":
        return _run("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
    return _read(Path("/proc/sys/kernel/random/boot_id"))


def _namespace() -> str:
    """Containers on one machine share its boot id, and each counts its own processes."""
    if sys.platform != "linux":
        return "all"
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""


def _started(pid: int) -> str | None:
    """When the process started: a number is used again, a number and its start are not."""
    if sys.platform != "linux":
        return _run("/bin/ps", "-o", "lstart=", "-p", str(pid)) or None
    stat = _stat(pid)
    return stat[19] if len(stat) > 19 else None


def _is_dead(pid: int) -> bool:
    """A zombie runs nothing, unless it is the ended main thread of a process whose other threads go on."""
    if sys.platform != "linux":
        return False
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False
    return _stat(pid)[:1] in (["Z"], ["X"]) and len(threads) == 1


def _stat(pid: int) -> list[str]:
    """The fields after the name, which is in parentheses and may hold anything: state first, start time twentieth."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


# --- macOS ------------------------------------------------------------------------------------------------------


def _run(*command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  (fixed commands by absolute path; the only argument is a number)
            command, capture_output=True, text=True, timeout=2, check=False, env={"LC_ALL": "C", "TZ": "UTC"}
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
