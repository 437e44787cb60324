"""Which packages named `agent`, `gateway` and `handlers` this process gets.

Owns the order of the import path and the refusal of strangers. Signoff keeps short package names because it
is an application; the price is that a folder people work in may hold an `agent/` of its own. The working
folder therefore goes last on the path, and a stranger of one of our names is refused before anything is
imported, because an agent that imports `agent` would silently get the other one.

Must know nothing of what the packages do: it runs before any of them is imported.
"""

import importlib.machinery
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path

PACKAGES = ("agent", "gateway", "handlers")
NAMES = (*PACKAGES, "signoff")


class ForeignPackageError(Exception):
    """A name of ours that belongs to somebody else; the message is for the person at the terminal."""


def working_folder_last(path: Sequence[str], working_folder: Path | None) -> list[str]:
    """The import path with the working folder once, at its end."""
    others = [entry for entry in path if entry and not _is_same(Path(entry), working_folder)]
    return others if working_folder is None else [*others, str(working_folder)]


def refuse_strangers(home: Path, working_folder: Path | None) -> None:
    """Raise unless each of our names means the one in `home`, here and in the working folder."""
    if working_folder is not None and not _is_same(working_folder, home):
        for found in _shadowed_by_us(working_folder):
            raise ForeignPackageError(
                f"{found} has the same name as a part of Signoff ({_ours(home, found.stem)}), and Python can "
                f"import only one of them. Rename it, or run signoff in another folder."
            )
    for name in NAMES:
        origin = _origin(name)
        if origin is None or not _is_same(origin, _ours(home, name)):
            raise ForeignPackageError(
                f"The package {name} is imported from {origin or 'nowhere'}, expected {_ours(home, name)}. "
                f"Take that folder off PYTHONPATH, or install Signoff in a virtual environment of its own."
            )


def _ours(home: Path, name: str) -> Path:
    return home / name / "__init__.py" if name in PACKAGES else home / f"{name}.py"


def _origin(name: str) -> Path | None:
    """Where Python takes `name` from, found without running it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _shadowed_by_us(folder: Path) -> Iterable[Path]:
    """Modules and packages in `folder` that bear a name of ours; a folder without Python in it is neither."""
    for name in NAMES:
        package = folder / name
        if package.is_dir() and any(package.glob("*.py")):
            yield package
        for suffix in importlib.machinery.all_suffixes():
            module = folder / f"{name}{suffix}"
            if module.is_file():
                yield module


def _is_same(one: Path, other: Path | None) -> bool:
    return other is not None and one.resolve() == other.resolve()
