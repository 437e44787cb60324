"""What is wrong with a configuration, said so that it can be put right: every key, what it takes, what to do.

Owns the words. Repeats nothing that was written there: it may be a secret in the wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent.decision import shape
from gateway import settings
from gateway.errors import Terminal
from gateway.settings import ELSEWHERE, EXPECTED, NESTED, PREFIX, TO_COME

SECRETS = ("SECRET", "SECRET_FILE")
"""Read by `secret.py`, not a setting."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One key, and what is wrong with it. An empty key: the file as a whole, or several keys at once."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" if self.key else self.text


class ConfigError(Terminal):
    """The configuration cannot be used. Nothing was started."""

    def __init__(self, where: str, problems: tuple[Problem, ...]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{where}: the configuration can't be used:{lines}")
        self.problems = problems


def explain(error: ValidationError, environ: Mapping[str, str]) -> tuple[Problem, ...]:
    """One problem for each thing that pydantic found, in our words."""
    found = error.errors()
    return tuple(_problem(details, environ) for details in found if not _follows(details, found))


def misspelt(environ: Iterable[str]) -> list[Problem]:
    """Variables that are almost ours, or a later version's. An address that nobody reads would start an empty store."""
    ours = (variable for variable in sorted(environ) if variable.upper().startswith(PREFIX))
    return [Problem(variable, text) for variable in ours if (text := _unread(variable))]


def _unread(variable: str) -> str:
    """Why nobody reads a variable, if somebody may think that we do."""
    known = [*(key.upper() for key in EXPECTED if "." not in key), *SECRETS]
    name = variable.upper().removeprefix(PREFIX).partition(NESTED)[0]
    if name.lower() in TO_COME:
        return _to_come(name.lower())
    close = get_close_matches(name, known, n=1, cutoff=0.85)
    return f"there is no such setting; did you mean {PREFIX}{close[0]}?" if close and close[0] != name else ""


def _follows(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Whether a list is too short only because what stands in it is wrong: then that alone is told."""
    loc = details["loc"]
    inside = (other for other in found if len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc)
    return details["type"] == "too_short" and any(inside)


def _problem(details: ErrorDetails, environ: Mapping[str, str]) -> Problem:
    path = tuple(part for part in details["loc"] if part != "[key]")
    key = _spelled(path, environ)
    match details["type"]:
        case "extra_forbidden":
            return Problem(key, _unknown(path))
        case "missing":
            return Problem(key, f"is missing: expected {_expected(path)}")
        case "value_error":
            return Problem(key, f"expected {_context(details)['error']}; got {shape(details['input'])}")
        case settings.CONDITION:
            wrong = _context(details)
            return Problem(f"{key}{wrong['path']}", wrong["problem"])
        case _:
            return Problem(key, f"expected {_expected(path)}; got {shape(details['input'])}")


def _context(details: ErrorDetails) -> Mapping[str, Any]:
    return details.get("ctx", {})


def _spelled(path: tuple[int | str, ...], environ: Mapping[str, str]) -> str:
    """The key as its author wrote it: `routes[0].expire_after`, or the variable that it came from."""
    names = [str(part) for part in path]
    for length in range(len(names), 0, -1):
        variable = PREFIX + NESTED.join(names[:length]).upper()
        if variable in environ:
            return variable
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(names))


def _expected(path: tuple[int | str, ...]) -> str:
    """From the table, for the key or the nearest one that holds it."""
    for length in range(len(path), 0, -1):
        text = EXPECTED.get(_pattern(path[:length]))
        if text:
            return text
    return "something else"


def _pattern(path: tuple[int | str, ...]) -> str:
    parts = [str(part) for part in path]
    if parts[0] in ("people", "routes"):
        parts[1:2] = ["*"] * len(parts[1:2])
    return ".".join(parts)


def _unknown(path: tuple[int | str, ...]) -> str:
    name = str(path[-1])
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if name in TO_COME:
        return _to_come(name)
    siblings = [key.rpartition(".")[2] for key in EXPECTED if _siblings(key, path)]
    close = get_close_matches(name, siblings, n=1)
    hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(siblings)}"
    return f"there is no such key; {hint}"


def _to_come(name: str) -> str:
    return f"{TO_COME[name]}: not in this version, and not ignored either: remove the key"


def _siblings(key: str, path: tuple[int | str, ...]) -> bool:
    return key.rpartition(".")[0] == _pattern(path).rpartition(".")[0] and not key.endswith("*")
