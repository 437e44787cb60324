"""The import path the command starts with, and what it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.import_path import ForeignPackageError, refuse_strangers, working_folder_last

HOME = Path(__file__).resolve().parents[2]


def run_signoff(*arguments: str, folder: Path, import_path: Path = HOME) -> subprocess.CompletedProcess[str]:
    """The command as a person runs it in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(import_path), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write_package(folder: Path, name: str) -> Path:
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('a stranger was imported')\n")
    return package


class TestWorkingFolderLast:
    def test_it_moves_from_the_front_to_the_end(self, tmp_path: Path):
        assert working_folder_last(["", "/lib", str(tmp_path)], tmp_path) == ["/lib", str(tmp_path)]

    def test_it_is_added_for_the_installed_command_which_starts_without_it(self, tmp_path: Path):
        assert working_folder_last(["/venv/bin", "/lib"], tmp_path) == ["/venv/bin", "/lib", str(tmp_path)]

    def test_a_symbolic_link_to_it_is_the_same_folder(self, tmp_path: Path):
        real, link = tmp_path / "real", tmp_path / "link"
        real.mkdir()
        link.symlink_to(real)
        assert working_folder_last([str(link), "/lib"], real) == ["/lib", str(real)]

    def test_without_a_working_folder_nothing_is_added(self):
        assert working_folder_last(["", "/lib"], None) == ["/lib"]


class TestStrangersInTheWorkingFolder:
    @pytest.mark.parametrize("name", ["agent", "gateway", "handlers"])
    def test_a_package_of_our_name_is_refused(self, tmp_path: Path, name: str):
        package = write_package(tmp_path, name)
        with pytest.raises(
            ForeignPackageError, match="Rename it, or run signoff in another folder"
        ) as refusal:
            refuse_strangers(HOME, tmp_path)
        assert str(package) in str(refusal.value)

    @pytest.mark.parametrize("name", ["agent.py", "signoff.py"])
    def test_a_module_of_our_name_is_refused(self, tmp_path: Path, name: str):
        (tmp_path / name).touch()
        with pytest.raises(ForeignPackageError, match=name):
            refuse_strangers(HOME, tmp_path)

    def test_a_folder_of_modules_without_init_is_a_package_too(self, tmp_path: Path):
        (tmp_path / "agent").mkdir()
        (tmp_path / "agent" / "support.py").touch()
        with pytest.raises(ForeignPackageError):
            refuse_strangers(HOME, tmp_path)

    def test_a_folder_without_python_in_it_is_nobodys_business(self, tmp_path: Path):
        (tmp_path / "agent").mkdir()
        (tmp_path / "agent" / "prompt.md").touch()
        refuse_strangers(HOME, tmp_path)

    def test_other_names_are_welcome(self, tmp_path: Path):
        write_package(tmp_path, "agents")
        refuse_strangers(HOME, tmp_path)

    def test_our_own_checkout_is_no_stranger(self):
        refuse_strangers(HOME, HOME)

    def test_a_removed_working_folder_is_no_stranger(self):
        refuse_strangers(HOME, None)


def test_a_name_of_ours_that_is_imported_from_elsewhere_is_refused(tmp_path: Path):
    with pytest.raises(ForeignPackageError, match="virtual environment of its own"):
        refuse_strangers(tmp_path, None)


class TestTheCommand:
    def test_refuses_in_one_line_and_imports_nothing_of_the_stranger(self, tmp_path: Path):
        write_package(tmp_path, "agent")
        result = run_signoff("--help", folder=tmp_path)
        assert result.returncode == 2, result.stderr
        assert result.stdout == ""
        assert result.stderr.startswith(
            f"signoff: {tmp_path / 'agent'} has the same name as a part of Signoff"
        )
        assert result.stderr.count("\n") == 1, result.stderr

    def test_refuses_a_stranger_ahead_of_us_on_the_python_path(self, tmp_path: Path):
        elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
        here.mkdir()
        write_package(elsewhere, "agent")
        result = run_signoff("--help", folder=here, import_path=Path(f"{elsewhere}{os.pathsep}{HOME}"))
        assert result.returncode == 2, result.stderr
        assert "Take that folder off PYTHONPATH" in result.stderr

    def test_shows_its_help_in_a_folder_without_strangers(self, tmp_path: Path):
        pytest.importorskip("gateway.cli")
        result = run_signoff("--help", folder=tmp_path)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("Usage: signoff")
