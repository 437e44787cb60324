"""What a docstring says of a function and of its parameters, in Google's, NumPy's and Sphinx's styles.

Owns the reading. It is lenient: a style that it does not know is all description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_GOOGLE_PARAMETERS = re.compile(r"(Args|Arguments|Parameters|Params):\s*$")
_GOOGLE_SECTION = re.compile(r"(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises):\s*$")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_SECTION = re.compile(r"(Parameters|Other Parameters|Returns|Yields|Raises)\s*$")
_NUMPY_ENTRY = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r":(param|type|returns?|rtype|raises?|parameter|arg|argument)\b[^:]*:")
_SPHINX_ENTRY = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Docstring:
    """What it says, up to the first section, and what it says of each parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docstring:
    lines = inspect.cleandoc(text or "").splitlines()
    first = next((at for at in range(len(lines)) if _is_section(lines, at)), len(lines))
    entries = _entries(lines)
    return Docstring("\n".join(lines[:first]).strip(), {name: said for name, said in entries if said})


def _is_section(lines: Sequence[str], at: int) -> bool:
    google = _GOOGLE_SECTION.match(lines[at]) is not None
    return google or _is_numpy_section(lines, at) or _SPHINX_FIELD.match(lines[at]) is not None


def _is_numpy_section(lines: Sequence[str], at: int) -> bool:
    underlined = at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1]) is not None
    return underlined and _NUMPY_SECTION.match(lines[at]) is not None


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, line in enumerate(lines):
        if _GOOGLE_PARAMETERS.match(line):
            yield from _google(lines[at + 1 :])
        elif _is_numpy_section(lines, at) and line.startswith(("Parameters", "Other")):
            yield from _numpy(lines[at + 2 :])
        elif entry := _SPHINX_ENTRY.match(line):
            yield entry[1], _joined(entry[2], lines[at + 1 :], deeper_than=0)


def _google(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Entries stand at the section's first indentation; what is deeper continues them."""
    section = _block(lines, deeper_than=0)
    margin = min((_indent(line) for line in section if line.strip()), default=0)
    for at, line in enumerate(section):
        entry = _GOOGLE_ENTRY.match(line.strip())
        if entry and _indent(line) == margin:
            yield entry[1], _joined(entry[2], section[at + 1 :], deeper_than=margin)


def _numpy(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Entries stand at the margin, their text below them and deeper."""
    for at, line in enumerate(lines):
        if _is_section(lines, at):
            return
        entry = _NUMPY_ENTRY.match(line)
        if entry:
            said = _joined("", lines[at + 1 :], deeper_than=0)
            yield from ((name.strip(), said) for name in entry[1].split(","))


def _block(lines: Sequence[str], *, deeper_than: int) -> list[str]:
    """The lines up to the first that is not indented deeper; empty ones do not end it."""
    ends = (at for at, line in enumerate(lines) if line.strip() and _indent(line) <= deeper_than)
    return list(lines[: next(ends, len(lines))])


def _joined(first: str, following: Sequence[str], *, deeper_than: int) -> str:
    return " ".join(" ".join([first, *_block(following, deeper_than=deeper_than)]).split())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
