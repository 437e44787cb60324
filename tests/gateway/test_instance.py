"""Which process is surely gone. Whatever cannot be told is "no": a card would say that running again is safe."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.instance import SEPARATOR, known_gone, this_instance

HOME = Path(__file__).resolve().parents[2]
TELLING = """
import sys
from gateway.instance import this_instance
print(this_instance(), flush=True)
sys.stdin.readline()
"""
THREAD_GOES_ON = """
import ctypes, sys, threading
from gateway.instance import this_instance
print(this_instance(), flush=True)
threading.Thread(target=sys.stdin.readline).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def start(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HOME
    )


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=20)


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process of this machine, and its id."""
    process = start(TELLING)
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    end(process)


class TestThisInstance:
    def test_is_alive(self):
        assert not known_gone(this_instance())

    def test_is_the_same_all_its_life_and_in_every_thread(self):
        told: list[str] = []
        thread = threading.Thread(target=lambda: told.append(this_instance()))
        thread.start()
        thread.join()
        assert told == [this_instance()]

    def test_names_its_process(self):
        parts = this_instance().split(SEPARATOR)
        assert parts[3] == str(os.getpid())
        assert len(parts) == 5
        assert all(parts)


class TestAnotherProcess:
    def test_that_runs_is_not_gone(self, other: tuple[subprocess.Popen[str], str]):
        assert not known_gone(other[1])
        assert other[1] != this_instance()

    def test_that_was_killed_is_gone(self, other: tuple[subprocess.Popen[str], str]):
        process, instance = other
        end(process)
        assert known_gone(instance)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a zombie from a process")
    def test_that_was_killed_is_gone_before_its_parent_looked(self, other: tuple[subprocess.Popen[str], str]):
        process, instance = other
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert known_gone(instance)

    @pytest.mark.skipif(sys.platform != "linux", reason="only there can the main thread end alone")
    def test_whose_main_thread_ended_still_runs(self):
        process = start(THREAD_GOES_ON)
        assert process.stdout is not None
        instance = process.stdout.readline().strip()
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            os.sched_yield()
        assert not known_gone(instance)
        end(process)
        assert known_gone(instance)

    def test_whose_number_is_used_again_is_gone(self):
        host, boot, namespace, pid, _ = this_instance().split(SEPARATOR)
        assert known_gone(SEPARATOR.join((host, boot, namespace, pid, "another-start")))

    @pytest.mark.parametrize("part", [0, 1, 2], ids=["host", "boot", "namespace"])
    def test_elsewhere_cannot_be_told(self, other: tuple[subprocess.Popen[str], str], part: int):
        process, instance = other
        end(process)
        parts = instance.split(SEPARATOR)
        parts[part] = "another"
        assert not known_gone(SEPARATOR.join(parts))

    def test_of_somebody_else_cannot_be_told(self, monkeypatch: pytest.MonkeyPatch):
        def forbidden(pid: int, signal: int) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "kill", forbidden)
        host, boot, namespace, _, started = this_instance().split(SEPARATOR)
        assert not known_gone(SEPARATOR.join((host, boot, namespace, "1", started)))


@pytest.mark.parametrize(
    "text",
    ["", "x", "////", "host/boot/ns/1", "host/boot/ns/1/2/3", "host/boot/ns/-1/2", "host/boot/ns/٣/2", "host//ns/1/2"],
)  # fmt: skip
def test_what_is_no_instance_is_not_gone(text: str):
    assert not known_gone(text)


@pytest.mark.parametrize("pid", ["0", "٣", "-1", "1e3", "9" * 40])
def test_a_number_that_is_no_process_is_not_gone(pid: str):
    host, boot, namespace, _, started = this_instance().split(SEPARATOR)
    assert not known_gone(SEPARATOR.join((host, boot, namespace, pid, started)))
