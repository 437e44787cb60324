"""Where the secret may come from, and which are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.seal import Key
from gateway.secret import FILE_VARIABLE, OWN_FILE, VARIABLE, SecretRefused, load_secret

HOME = Path(__file__).resolve().parents[2]
SECRET = "c4n4ry" + "0123456789abcdef" * 3
LOADING = """
import sys, pathlib
from gateway.secret import load_secret
sys.stdin.readline()
print(load_secret(pathlib.Path(sys.argv[1]), embedded=True, environ={}).decode())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def refused(folder: Path, *, embedded: bool = True, **environ: str) -> str:
    with pytest.raises(SecretRefused) as error:
        load_secret(folder, embedded=embedded, environ=environ)
    assert "c4n4ry" not in str(error.value), "the secret is in the message"
    return str(error.value)


def a_file(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


class TestFromTheEnvironment:
    def test_is_taken(self, folder: Path):
        assert load_secret(folder, embedded=True, environ={VARIABLE: f" {SECRET}\n"}) == Key(SECRET.encode())
        assert not folder.exists(), "nothing is made beside it"

    @pytest.mark.parametrize("secret", ["", "   ", "c4n4ry", "c4n4ry" + "x" * 25])
    def test_is_refused_if_empty_or_short(self, folder: Path, secret: str):
        told = refused(folder, SIGNOFF_SECRET=secret)
        assert told.startswith(
            f"{VARIABLE}: expected at least 32 bytes; got {len(secret.strip())}: make one with"
        )

    def test_is_refused_if_it_is_a_placeholder(self, folder: Path):
        assert "got a repetition" in refused(folder, SIGNOFF_SECRET="changeme" * 8)

    def test_may_be_bytes_that_are_no_text(self, folder: Path):
        given = bytes(range(128, 180)).decode(errors="surrogateescape")
        assert load_secret(folder, embedded=True, environ={VARIABLE: given}) == Key(bytes(range(128, 180)))

    def test_and_from_a_file_is_refused(self, folder: Path):
        told = refused(folder, SIGNOFF_SECRET=SECRET, SIGNOFF_SECRET_FILE="x")
        assert told == f"{VARIABLE}: expected it or {FILE_VARIABLE}; got both: remove one"

    @pytest.mark.parametrize(("secret", "file"), [(SECRET, ""), ("", "x"), ("", "")])
    def test_empty_beside_the_other_one_is_refused_too(self, folder: Path, secret: str, file: str):
        assert "got both" in refused(folder, SIGNOFF_SECRET=secret, SIGNOFF_SECRET_FILE=file)


class TestFromAFile:
    @pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
    def test_is_taken_if_others_cannot_read_it(self, folder: Path, tmp_path: Path, mode: int):
        name = a_file(tmp_path / "s", SECRET.encode() + b"\n", mode)
        assert load_secret(folder, embedded=False, environ={FILE_VARIABLE: name}) == Key(SECRET.encode())

    @pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o620, 0o601])
    def test_is_refused_if_others_can(self, folder: Path, tmp_path: Path, mode: int):
        told = refused(folder, SIGNOFF_SECRET_FILE=a_file(tmp_path / "s", SECRET.encode(), mode))
        assert (
            told
            == f"{FILE_VARIABLE}: others can read or change it (mode {mode:04o}): chmod 600 it, and change it"
        )

    @pytest.mark.parametrize("content", [b"", b"\n", b"c4n4ry\n", b"x" * 64])
    def test_is_refused_if_empty_short_or_a_repetition(self, folder: Path, tmp_path: Path, content: bytes):
        assert refused(folder, SIGNOFF_SECRET_FILE=a_file(tmp_path / "s", content)).startswith(FILE_VARIABLE)

    def test_is_refused_if_there_is_none(self, folder: Path, tmp_path: Path):
        told = refused(folder, SIGNOFF_SECRET_FILE=str(tmp_path / "none"))
        assert told == f"{FILE_VARIABLE}: expected a readable file; got: No such file or directory"
        assert "expected the path of a file" in refused(folder, SIGNOFF_SECRET_FILE="")

    def test_is_refused_if_it_is_no_file(self, folder: Path, tmp_path: Path):
        assert "expected a" in refused(folder, SIGNOFF_SECRET_FILE=str(tmp_path))
        assert "got something else" in refused(folder, SIGNOFF_SECRET_FILE="/dev/null")


class TestMade:
    def test_is_for_us_alone_and_stays(self, folder: Path):
        made = load_secret(folder, embedded=True, environ={})
        path = folder / OWN_FILE
        assert path.stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(made) == 64
        assert load_secret(folder, embedded=True, environ={}) == made
        assert [each.name for each in folder.iterdir()] == [OWN_FILE], "a draft was left behind"

    def test_is_another_one_elsewhere(self, folder: Path, tmp_path: Path):
        one = load_secret(folder, embedded=True, environ={})
        assert load_secret(tmp_path / "other", embedded=True, environ={}) != one

    def test_is_not_made_for_a_store_that_others_use_too(self, folder: Path):
        told = refused(folder, embedded=False)
        assert told.startswith(
            f"{VARIABLE}: expected a secret of at least 32 bytes, the same for every process"
        )
        assert not folder.exists()

    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o660])
    def test_is_refused_once_others_can_read_it(self, folder: Path, mode: int):
        load_secret(folder, embedded=True, environ={})
        (folder / OWN_FILE).chmod(mode)
        assert f"(mode {mode:04o})" in refused(folder)

    def test_is_refused_once_it_is_empty_and_not_made_anew(self, folder: Path):
        """Whatever was sealed with it would be refused with a new one: somebody has to look."""
        folder.mkdir()
        a_file(folder / OWN_FILE, b"")
        assert "got 0" in refused(folder)

    def test_is_refused_where_it_cannot_be_kept(self, tmp_path: Path):
        (tmp_path / "file").touch()
        assert "could not be made" in refused(tmp_path / "file" / "data")

    def test_by_processes_that_start_at_once_is_one(self, folder: Path):
        starting = [
            subprocess.Popen(
                [sys.executable, "-c", LOADING, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=HOME,
            )
            for _ in range(2)
        ]
        for each in starting:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        made = {each.communicate(timeout=60)[0] for each in starting}
        assert len(made) == 1
        assert made == {(folder / OWN_FILE).read_text()}
