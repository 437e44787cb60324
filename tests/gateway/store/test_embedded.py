"""The embedded store's life: one owner at a time, nothing left behind, nothing lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import StoreBusy, StoreMissing, StoreRefused
from gateway.ports import Append, DocumentId
from gateway.store import binary, embedded
from gateway.store.embedded import EmbeddedServer, start_embedded
from gateway.store.live import find_live, recorded_socket
from gateway.store.opening import open_store
from gateway.telemetry import JsonLines
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.waiting import until

SESSION = DocumentId("s_07_one")
HOME = Path(__file__).resolve().parents[3]
OWNER = """
import sys, pathlib, time
from gateway.store.embedded import start_embedded
server = start_embedded(pathlib.Path(sys.argv[1]))
print(server.process_id, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedServer]:
    running = start_embedded(folder)
    yield running
    running.stop()


def wait_until_gone(process_id: int) -> float:
    began = time.monotonic()
    while time.monotonic() - began < 5:
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return time.monotonic() - began
        time.sleep(0.002)
    raise AssertionError(f"process {process_id} is still there")


async def write(url: str, clock: ManualClock, entry: bytes) -> None:
    store = await open_store(url, clock=clock)
    await store.commit(a_commit(appends=(Append(SESSION, (entry,)),)))
    await store.close()


async def read(url: str, clock: ManualClock) -> list[bytes]:
    store = await open_store(url, clock=clock)
    entries = await store.transcript(SESSION)
    await store.close()
    return entries


class TestStopping:
    async def test_and_starting_again_loses_nothing(self, folder: Path, clock: ManualClock):
        for n in range(3):
            server = start_embedded(folder)
            await write(server.url, clock, b"%d" % n)
            server.stop()
        server = start_embedded(folder)
        assert await read(server.url, clock) == [b"0", b"1", b"2"]
        server.stop()

    def test_leaves_nothing_behind(self, folder: Path):
        server = start_embedded(folder)
        process_id = server.process_id
        socket = recorded_socket(folder)
        assert process_id
        assert socket
        assert socket.exists()
        server.stop()
        wait_until_gone(process_id)
        assert not socket.parent.exists()
        assert find_live(folder) is None


class TestOwning:
    def test_a_second_owner_is_refused_after_a_moment(
        self, server: EmbeddedServer, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(embedded, "_LOCK_PATIENCE_S", 0.05)
        with pytest.raises(StoreBusy, match="another Signoff process owns"):
            start_embedded(folder)
        assert server.ready

    def test_readers_find_the_live_server(self, server: EmbeddedServer, folder: Path):
        assert find_live(folder) == server.url

    def test_a_killed_owner_takes_its_server_along_and_frees_the_folder(self, folder: Path):
        owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, cwd=HOME)
        assert owner.stdout
        process_id = int(owner.stdout.readline())
        owner.kill()
        owner.wait()
        owner.stdout.close()
        server = start_embedded(folder)
        wait_until_gone(process_id)
        assert find_live(folder) == server.url
        server.stop()

    def test_the_folder_stays_locked_until_the_server_is_gone(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """The owner's own descriptor is closed: the server's is enough."""
        server = start_embedded(folder)
        os.close(server._lock)
        monkeypatch.setattr(embedded, "_LOCK_PATIENCE_S", 0.05)
        with pytest.raises(StoreBusy):
            start_embedded(folder)
        server.stop()


class TestSupervision:
    async def test_a_server_that_dies_comes_back_at_the_same_place(
        self, server: EmbeddedServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(embedded, "_WATCH_S", 0.01)
        watching = asyncio.create_task(server.watch())
        await write(server.url, clock, b"before")
        first = server.process_id
        assert first
        assert server.ready
        os.kill(first, signal.SIGKILL)
        await until(lambda: server.process_id != first and server.ready, what="a new server")
        assert await read(server.url, clock) == [b"before"]
        watching.cancel()

    async def test_a_store_lives_through_it(
        self, server: EmbeddedServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(embedded, "_WATCH_S", 0.01)
        watching = asyncio.create_task(server.watch())
        store = await open_store(server.url, clock=clock)
        assert server.process_id
        os.kill(server.process_id, signal.SIGKILL)
        await store.commit(a_commit(appends=(Append(SESSION, (b"after",)),)))
        assert await store.transcript(SESSION) == [b"after"]
        await store.close()
        watching.cancel()

    async def test_says_what_it_does(
        self,
        server: EmbeddedServer,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ):
        """A store that does not come back is told with the server's own words, until it does."""
        caplog.set_level("INFO", "signoff")
        monkeypatch.setattr(embedded, "_WATCH_S", 0.01)
        manifest = folder / "appendonlydir" / "appendonly.aof.manifest"
        whole = manifest.read_text()
        manifest.write_text("nonsense\n")
        assert server.process_id
        os.kill(server.process_id, signal.SIGKILL)
        watching = asyncio.create_task(server.watch())
        await until(lambda: "store-not-back" in caplog.messages, what="a failed start")
        manifest.write_text(whole)
        await until(lambda: "store-back" in caplog.messages, what="a start")
        watching.cancel()
        assert caplog.messages[:2] == ["store-exited", "store-not-back"]
        failed = next(record for record in caplog.records if record.getMessage() == "store-not-back")
        assert "did not start" in str(json.loads(JsonLines().format(failed))["said"])


class TestStarting:
    def test_only_from_the_main_thread(self, folder: Path):
        caught: list[BaseException] = []

        def start() -> None:
            try:
                start_embedded(folder)
            except RuntimeError as error:
                caught.append(error)

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert "main thread" in str(caught[0])

    def test_in_a_folder_of_long_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        long = tmp_path / ("x" * 90)
        long.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(long))
        server = start_embedded(long / "data")
        assert server.ready
        server.stop()

    def test_with_a_broken_file_says_so_in_the_servers_words(self, folder: Path):
        start_embedded(folder).stop()
        manifest = next(folder.glob("appendonlydir/*.manifest"))
        manifest.write_text("nonsense\n")
        with pytest.raises(StoreRefused, match="did not start"):
            start_embedded(folder)
        manifest.unlink()
        start_embedded(folder).stop()

    def test_where_no_wheel_exists_names_the_way_out(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(binary.platform, "machine", lambda: "riscv64")
        with pytest.raises(StoreMissing, match="SIGNOFF_REDIS_URL"):
            start_embedded(folder)

    def test_keeps_everything_from_others(self, server: EmbeddedServer, folder: Path):
        socket = recorded_socket(folder)
        assert socket
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        assert folder.stat().st_mode & 0o777 == 0o700


CHILD = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}.'); time.sleep(60)"
PARENT = """
import sys, time
from gateway.store.guard import guarded
child = guarded([sys.executable, "-c", sys.argv[1], sys.argv[2]], by_shell=sys.argv[3] == "True")
time.sleep(60)
"""


@pytest.mark.parametrize("by_shell", [False, True])
def test_a_guarded_child_dies_with_its_parent(tmp_path: Path, by_shell: bool):
    """By the signal on Linux, by the shell elsewhere; both work here."""
    told = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD, str(told), str(by_shell)], cwd=HOME)
    while not told.exists() or not told.read_text().endswith("."):
        time.sleep(0.005)
    parent.kill()
    parent.wait()
    wait_until_gone(int(told.read_text().rstrip(".")))
