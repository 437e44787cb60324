"""The one redactor: what must not be seen, hidden in every sink.

Owns how declared paths reach into data, the marker, and what becomes of a hidden value that turns up elsewhere. A path
is names joined by dots (`payment.token`); lists are passed through element by element (`items.secret`). Where a path
leads through something that has no fields, that something is hidden whole. Nothing here changes what a tool gets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agent.schema import Node, Reach, reach
from agent.tool_error import ToolDefinitionError

REDACTED = "[REDACTED]"

SHORTEST_SECRET = 4
"""Characters. Shorter texts are everywhere; removing them would hide what is not secret and still tell which it was."""
SHORTEST_LINE = 8
ELLIPSIS = "…"

_Steps = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Locked:
    """What is hidden of some arguments: the declared paths that are present, and how many values they hide."""

    names: tuple[str, ...]
    count: int


class LockedFieldChanged(ValueError):
    """An edit touches a field that is hidden from who edits. `path` is the declared one; no value is named."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: hidden, so it can't be changed")
        self.path = path


def check_paths(option: str, paths: Sequence[str], schema: Node | None) -> tuple[str, ...]:
    """The paths, if they are ones and, as far as a schema tells, lead somewhere. Raises ToolDefinitionError.

    A path that hides nothing is a secret that is shown.
    """
    if isinstance(paths, str):
        raise ToolDefinitionError(f"{option}: a list of paths expected, not one text")
    for path in paths:
        if not _is_path(path):
            raise ToolDefinitionError(
                f"{option}: {path!r} is not a path; write names joined by dots, and leave lists out (items.secret)"
            )
        if schema is not None and reach(schema, path.split("."), through_lists=True) is Reach.MISSING:
            raise ToolDefinitionError(
                f"{option}: {path!r} leads to no parameter, or to no declared field of one"
            )
    return tuple(paths)


def redact(arguments: Mapping[str, JsonValue], paths: Iterable[str]) -> dict[str, JsonValue]:
    """The arguments with the marker in place of each value that a path leads to; an absent field stays absent.

    The values that stay are shared with `arguments`, not copied.
    """
    shown: JsonValue = dict(arguments)
    for steps in _steps(paths):
        shown = _hide(shown, steps)
    return cast(dict[str, JsonValue], shown)


def redact_value(value: JsonValue, paths: Iterable[str]) -> JsonValue:
    """The same for any JSON, such as a tool's result: a text or a number that has no fields is hidden whole."""
    for steps in _steps(paths):
        value = _hide(value, steps)
    return value


def locked(paths: Iterable[str], arguments: Mapping[str, JsonValue]) -> Locked:
    """Which of the declared paths hide something here, and how many values in all."""
    counts = {".".join(steps): len(list(_hidden(dict(arguments), steps))) for steps in _steps(paths)}
    return Locked(tuple(name for name, count in counts.items() if count), sum(counts.values()))


def restore(
    edited: Mapping[str, JsonValue], original: Mapping[str, JsonValue], paths: Iterable[str]
) -> dict[str, JsonValue]:
    """Edited arguments with the hidden values put back: for each marker, and for a hidden field that was left out.

    Raises LockedFieldChanged when a hidden field was given a value, or what holds it was removed or resized.
    """
    merged: JsonValue = dict(edited)
    for steps in _steps(paths):
        try:
            merged = _merge(merged, dict(original), steps)
        except _Touched:
            raise LockedFieldChanged(".".join(steps)) from None
    return cast(dict[str, JsonValue], merged)


def secrets(arguments: Mapping[str, JsonValue], paths: Iterable[str]) -> frozenset[str]:
    """The texts by which hidden values could turn up elsewhere, for `scrub`. Keys are not values."""
    hidden = (value for steps in _steps(paths) for value in _hidden(dict(arguments), steps))
    forms = (form for value in hidden for leaf in _leaves(value) for form in _forms(leaf))
    return frozenset(form for form in forms if len(form) >= SHORTEST_SECRET)


def scrub(text: str, secrets: frozenset[str]) -> str:
    """A text, of any origin, with the marker in place of each hidden value in it.

    Also of one that was cut off: the start of a hidden value before a final ellipsis.
    """
    found = [secret for secret in secrets if secret in text]
    if found:
        # In one pass and the longest first, so that no secret is looked for in another one's marker.
        anyone = "|".join(re.escape(secret) for secret in sorted(found, key=len, reverse=True))
        text = re.sub(anyone, REDACTED, text)
    return _without_cut_secret(text, secrets) if text.endswith(ELLIPSIS) else text


def _is_path(path: object) -> bool:
    """An index is no name: lists are passed through, so a path with one in it would hide nothing."""
    if not isinstance(path, str):
        return False
    steps = path.split(".")
    return all(
        step and not step.isdecimal() and not set(step) & set("[]*") and step == step.strip()
        for step in steps
    )


# --- reaching ------------------------------------------------------------------------------------------------


def _steps(paths: Iterable[str]) -> Sequence[_Steps]:
    """The paths as names, without those that another one covers."""
    split = dict.fromkeys(tuple(path.split(".")) for path in paths)
    return [steps for steps in split if not any(steps[:n] in split for n in range(1, len(steps)))]


def _hide(value: JsonValue, steps: _Steps) -> JsonValue:
    if not steps:
        return REDACTED
    match value:
        case None:
            return None
        case list():
            return [_hide(item, steps) for item in value]
        case dict():
            if steps[0] not in value:
                return value
            return {**value, steps[0]: _hide(value[steps[0]], steps[1:])}
        case _:
            return REDACTED


def _hidden(value: JsonValue, steps: _Steps) -> Iterator[JsonValue]:
    """Each value that `_hide` puts the marker in place of."""
    if not steps or not (value is None or isinstance(value, list | dict)):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _hidden(item, steps)
    elif isinstance(value, dict) and steps[0] in value:
        yield from _hidden(value[steps[0]], steps[1:])


def _hides(value: JsonValue, steps: _Steps) -> bool:
    return any(True for _ in _hidden(value, steps))


# --- putting back --------------------------------------------------------------------------------------------


class _Touched(Exception):
    """A hidden value is not as it was."""


def _merge(edited: JsonValue, original: JsonValue, steps: _Steps) -> JsonValue:
    if not _hides(original, steps):
        return _untouched(edited, hides=_hides(edited, steps))
    if not steps or not isinstance(original, list | dict):
        _untouched(edited, hides=edited != REDACTED)
        return original
    if isinstance(original, list):
        return _merge_list(edited, original, steps)
    if not isinstance(edited, dict):
        raise _Touched
    if steps[0] in edited:
        return {**edited, steps[0]: _merge(edited[steps[0]], original[steps[0]], steps[1:])}
    # A field that nobody could see may be left out of a form; what holds it could be seen, and was removed.
    _untouched(edited, hides=len(steps) > 1)
    return {**edited, steps[0]: original[steps[0]]}


def _merge_list(edited: JsonValue, original: list[JsonValue], steps: _Steps) -> JsonValue:
    # With an element more or less, it cannot be known which hidden value belongs to which element.
    if not isinstance(edited, list) or len(edited) != len(original):
        raise _Touched
    return [_merge(mine, theirs, steps) for mine, theirs in zip(edited, original, strict=True)]


def _untouched(edited: JsonValue, *, hides: bool) -> JsonValue:
    if hides:
        raise _Touched
    return edited


# --- other forms ---------------------------------------------------------------------------------------------


def _leaves(value: JsonValue) -> Iterator[str | float]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case bool() | None:
            return
        case _:
            yield value


def _forms(leaf: str | float) -> Iterator[str]:
    """How a value may be written: as it is, escaped in JSON or by Python, collapsed to a line, or by its lines."""
    if not isinstance(leaf, str):
        yield from {repr(leaf), repr(float(leaf)), f"{leaf:,}", json.dumps(leaf)}
        if float(leaf).is_integer():
            yield from {str(int(leaf)), f"{int(leaf):,}"}
        return
    yield leaf
    yield leaf.strip()
    yield from {json.dumps(leaf)[1:-1], json.dumps(leaf, ensure_ascii=False)[1:-1], repr(leaf)[1:-1]}
    yield " ".join(leaf.split())
    lines = leaf.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= SHORTEST_LINE)


def _without_cut_secret(text: str, secrets: frozenset[str]) -> str:
    kept = text.removesuffix(ELLIPSIS)
    longest = max((_overlap(kept, secret) for secret in secrets), default=0)
    return kept[: len(kept) - longest] + REDACTED + ELLIPSIS if longest else text


def _overlap(text: str, secret: str) -> int:
    """How much of a secret's start is the text's end, from the shortest on that could tell something."""
    most = min(len(text), len(secret) - 1)
    return next((n for n in range(most, SHORTEST_SECRET - 1, -1) if text.endswith(secret[:n])), 0)
