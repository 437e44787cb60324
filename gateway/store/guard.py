"""A child process that cannot outlive us, however we end.

Linux tells the child itself, by the parent-death signal. Elsewhere a shell stands between and waits for a pipe from us
to close.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1
_SHELL = """
exec 3<&0
"$@" <&- 3<&- &
child=$!
trap 'kill -KILL $child' TERM
(read -r _ <&3; kill -KILL $child) &
wait $child
kill -KILL $! 2>/dev/null
"""
"""The reader ends when the pipe does, that is, with the last process that holds its other end: us. It reads from a
copy, because a shell gives what it puts in the background an empty input."""


def guarded(
    command: Sequence[str], *, keep_open: int | None = None, by_shell: bool = sys.platform != "linux"
) -> subprocess.Popen[bytes]:
    """Starts `command` with the descriptor `keep_open`, in a group of its own, so that no Ctrl-C reaches it."""
    if by_shell:
        return _start(["/bin/sh", "-c", _SHELL, "guard", *command], keep_open, stdin=subprocess.PIPE)
    return _start(command, keep_open, stdin=subprocess.DEVNULL, before=_die_with_parent(os.getpid()))


def _start(
    command: Sequence[str], keep_open: int | None, *, stdin: int, before: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    # What is started is ours, found in a wheel; before its exec the child makes two system calls and nothing else.
    return subprocess.Popen(  # noqa: S603
        command,
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=() if keep_open is None else (keep_open,),
        start_new_session=True,
        preexec_fn=before,  # noqa: PLW1509
    )


def _die_with_parent(parent: int) -> Callable[[], None]:
    """For the child, between fork and exec. Loaded here: nothing but the call itself is safe over there."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # We died before the child could ask.
            os.kill(os.getpid(), signal.SIGKILL)

    return ask
