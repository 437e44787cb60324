"""The question that a tool asks, as one sentence: `Refund {amount} {currency} on order {order_id}?`.

Owns the template: its check against the parameters when the tool is built, and how values are put into it. It does
its own substitution: in Python's formats, a placeholder can reach into objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.canonical import canonical
from agent.schema import Node, Reach, reach
from agent.tool_error import ToolDefinitionError

LONGEST_VALUE = 60
LONGEST_TEMPLATE = 300

_PIECES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[^{}]+|[{}]")
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_FIVE_DIGITS = re.compile(r"-?\d{5,}(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Where a value goes: the names that lead to it."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A checked template: fixed texts and placeholders, in order."""

    parts: tuple[str | Placeholder, ...]

    def about(self, arguments: Mapping[str, JsonValue]) -> str:
        """The sentence with these arguments' values in it. A value that is not there is `(none)`."""
        texts = (
            _rendered(_value_at(arguments, part.steps)) if isinstance(part, Placeholder) else part
            for part in self.parts
        )
        return "".join(texts)


def read_sentence(template: str, *, schema: Node, redact: Sequence[str]) -> Sentence:
    """Check a template. Raises ToolDefinitionError, naming the placeholder that cannot be."""
    if not template.strip() or len(template.splitlines()) != 1 or len(template) > LONGEST_TEMPLATE:
        raise ToolDefinitionError(f"ask: one line of 1 to {LONGEST_TEMPLATE} characters expected")
    parts = tuple(_part(piece) for piece in _PIECES.finditer(template))
    for part in parts:
        if isinstance(part, Placeholder):
            _check(part, schema, redact)
    return Sentence(parts)


def _part(piece: re.Match[str]) -> str | Placeholder:
    text, path = piece[0], piece[1]
    if text in ("{{", "}}"):
        return text[0]
    if path is not None and _PATH.fullmatch(path):
        return Placeholder(tuple(path.split(".")))
    if "{" in text or "}" in text:
        raise ToolDefinitionError(
            f"ask: {text!r} is not a placeholder; write {{name}} or {{name.field}}, and {{{{ or }}}} for a brace"
        )
    return text


def _check(placeholder: Placeholder, schema: Node, redact: Sequence[str]) -> None:
    steps = placeholder.steps
    name = "{" + ".".join(steps) + "}"
    if reach(schema, steps, through_lists=False) is not Reach.FOUND:
        raise ToolDefinitionError(f"ask: {name} is not a parameter, or not a declared field of one")
    for path in redact:
        hidden = tuple(path.split("."))
        if hidden[: len(steps)] == steps or steps[: len(hidden)] == hidden:
            raise ToolDefinitionError(f"ask: {name} would show {path!r}, which is redacted")


def _value_at(arguments: Mapping[str, JsonValue], steps: tuple[str, ...]) -> JsonValue:
    value: JsonValue = dict(arguments)
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _rendered(value: JsonValue) -> str:
    match value:
        case None | [] | {}:
            return "(none)"
        case str():
            return _short(value) if value else "(empty text)"
        case bool() | list() | dict():
            return _short(canonical(value).decode())
        case int() | float():
            return _number(canonical(value).decode())


def _number(digits: str) -> str:
    """As it will run, and from five digits on with a reading beside: `50000 (50,000)`."""
    if not _FIVE_DIGITS.fullmatch(digits):
        return digits
    whole, dot, fraction = digits.partition(".")
    return f"{digits} ({int(whole):,}{dot}{fraction})"


def _short(text: str) -> str:
    """On one line, and cut with a mark. A text of white space alone is shown as what it is."""
    # Only so much of a long text is looked at; a cut within it is a cut anyway.
    line = " ".join(text[: 20 * LONGEST_VALUE].split())
    if not line:
        return "(only white space)"
    cut = len(line) > LONGEST_VALUE or len(text) > 20 * LONGEST_VALUE
    return line[: LONGEST_VALUE - 1] + "…" if cut else line
