"""The rules of the house that no tool checks: what ships, where imports stand, what the locks may say."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).resolve().parent.parent
PACKAGES = ("agent", "gateway", "handlers")
LOCKS = ("requirements.lock", "requirements-test.lock", "requirements-bench.lock")

LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"

# One import that each contract forbids: a contract that cannot fail keeps nothing.
VIOLATIONS = {
    "agent-knows-nobody": ("agent/violation.py", "import gateway.violated"),
    "agent-does-no-io": ("agent/violation.py", "from aiohttp import web"),
    "only-the-roof-sees-channels": ("gateway/violation.py", "import handlers.violated"),
    "nobody-imports-the-roof": ("handlers/violation.py", "import gateway.__main__"),
    "channels-are-independent": ("handlers/one/violation.py", "import handlers.two"),
    "anthropic-in-one-file": ("agent/violation.py", "import anthropic"),
    "redis-under-the-store": ("gateway/violation.py", "import redis.asyncio"),
    "slack-under-its-channel": ("handlers/one/violation.py", "import slack_sdk"),
    "lark-under-its-channel": ("handlers/one/violation.py", "import lark_oapi.ws"),
}

# Imports inside functions: "file: module" and why it cannot stand at the top. A cycle is no reason.
IMPORTS_IN_FUNCTIONS = {
    "gateway/__main__.py: gateway.cli": "strangers of our names are refused before any other import",
}


def read_project() -> dict[str, Any]:
    return tomllib.loads((HOME / "pyproject.toml").read_text())


def shipped_files() -> set[str]:
    """Every file of the packages, by its path in the repository."""
    files = {
        path
        for package in PACKAGES
        for path in (HOME / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    return {path.relative_to(HOME).as_posix() for path in files} | {"signoff.py"}


def imports_in_functions(source: str) -> Iterator[str]:
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield node.module or "."
                elif isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)


@pytest.fixture(scope="module")
def names_in_wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    pytest.importorskip("hatchling", reason="the build backend comes with the `test` extra")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=HOME,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


class TestTheWheel:
    def test_holds_every_file_of_the_packages(self, names_in_wheel: set[str]):
        missing = shipped_files() - names_in_wheel
        assert not missing, f"not in the wheel: {sorted(missing)}"

    def test_holds_nothing_else(self, names_in_wheel: set[str]):
        strangers = {
            name for name in names_in_wheel if not re.match(r"(agent|gateway|handlers|signoff-[^/]+)/", name)
        }
        assert strangers == {"signoff.py"}

    def test_holds_the_licence_and_the_command(self, names_in_wheel: set[str]):
        ends = {name.partition(".dist-info/")[2] for name in names_in_wheel}
        assert {"licenses/LICENSE", "entry_points.txt"} <= ends


class TestImports:
    def test_stand_at_the_top(self):
        found = {
            f"{path.relative_to(HOME).as_posix()}: {module}"
            for package in PACKAGES
            for path in (HOME / package).rglob("*.py")
            for module in imports_in_functions(path.read_text())
        }
        hidden = found - IMPORTS_IN_FUNCTIONS.keys()
        assert not hidden, f"move to the top, or name the missing module that would break the cycle: {hidden}"
        stale = IMPORTS_IN_FUNCTIONS.keys() - found
        assert not stale, f"no longer in the code, take it off the list: {stale}"

    @pytest.mark.parametrize(
        ("source", "modules"),
        [
            ("import os", []),
            ("def f():\n    import os.path", ["os.path"]),
            ("async def f():\n    from a.b import c", ["a.b"]),
            ("class A:\n    def f(self):\n        if True:\n            import os", ["os"]),
        ],
    )
    def test_the_search_finds_them(self, source: str, modules: list[str]):
        assert list(imports_in_functions(source)) == modules


class TestContracts:
    @pytest.fixture
    def house(self, tmp_path: Path) -> Path:
        """The empty rooms of this house, with its contracts."""
        for package in (*PACKAGES, "gateway/store", "handlers/one", "handlers/two"):
            (tmp_path / package).mkdir()
            (tmp_path / package / "__init__.py").touch()
        for module in ("gateway/__main__.py", "gateway/violated.py", "handlers/violated.py"):
            (tmp_path / module).touch()
        shutil.copy(HOME / "pyproject.toml", tmp_path)
        return tmp_path

    def check(self, house: Path, contract: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", LINT_IMPORTS, "--no-logo", "--no-cache", "--contract", contract],
            cwd=house,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_each_has_a_violation_to_try(self):
        assert [each["id"] for each in read_project()["tool"]["importlinter"]["contracts"]] == list(
            VIOLATIONS
        )

    @pytest.mark.parametrize("contract", VIOLATIONS)
    def test_each_is_broken_by_its_violation_and_by_nothing_else(self, house: Path, contract: str):
        kept = self.check(house, contract)
        assert kept.returncode == 0, kept.stdout + kept.stderr
        file, line = VIOLATIONS[contract]
        (house / file).write_text(line + "\n")
        broken = self.check(house, contract)
        assert broken.returncode == 1, broken.stdout + broken.stderr
        assert "Contracts: 0 kept, 1 broken." in broken.stdout, broken.stdout + broken.stderr


@pytest.mark.parametrize("lock", LOCKS)
class TestLocks:
    def test_name_no_place_to_fetch_from(self, lock: str):
        text = (HOME / lock).read_text()
        assert "://" not in text
        assert not re.search(r"^\s*(--(index|extra-index|find)|-[if]\b)", text, re.MULTILINE)

    def test_pin_every_package_with_hashes(self, lock: str):
        for entry in re.split(r"\n(?=\w)", (HOME / lock).read_text()):
            if not entry.startswith("#"):
                assert re.match(r"[\w.-]+==\S+", entry), f"not pinned: {entry.splitlines()[0]}"
                assert "--hash=sha256:" in entry, f"no hash: {entry.splitlines()[0]}"

    def test_hold_every_dependency_by_name(self, lock: str):
        project = read_project()["project"]
        extra = lock.removeprefix("requirements").removesuffix(".lock").removeprefix("-")
        wanted = [*project["dependencies"], *project["optional-dependencies"].get(extra, [])]
        pinned = set(re.findall(r"^([\w.-]+)==", (HOME / lock).read_text(), re.MULTILINE))
        missing = {re.split(r"[<>=\[; ]", each)[0] for each in wanted} - pinned
        assert not missing, f"run `make lock`: {missing}"


def test_every_decision_record_is_in_the_index():
    folder = HOME / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    records = {path.name for path in folder.glob("[0-9]*.md")}
    assert records, "no record found"
    assert {name for name in records if f"({name})" not in index} == set()
    numbers = [name[:4] for name in records]
    assert len(numbers) == len(set(numbers)), "two records share a number"
