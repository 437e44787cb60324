"""What a JSON Schema takes, in words: `a whole number from 1 to 5000`.

Owns the wording, so that forms, refused edits and the model read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from agent.canonical import canonical
from agent.schema import Node, forms

MOST_CHOICES = 20


def expectation(root: Node, node: Node) -> str:
    """What a schema takes, in words: `a whole number from 1 to 5000`."""
    phrases = dict.fromkeys(_phrase(form) for form in forms(root, node))
    # "nothing" reads best at the end.
    ordered = sorted(phrases, key=lambda phrase: phrase == _PHRASES["null"]({}))
    return " or ".join(ordered)


def _phrase(form: Node) -> str:
    if "const" in form:
        return f"exactly {_choice(form['const'])}"
    choices = form.get("enum")
    if isinstance(choices, list):
        more = f" or {len(choices) - MOST_CHOICES} others" if len(choices) > MOST_CHOICES else ""
        return f"one of: {', '.join(map(_choice, choices[:MOST_CHOICES]))}{more}"
    kind = form.get("type")
    return _PHRASES[kind](form) if isinstance(kind, str) and kind in _PHRASES else "a value"


def _choice(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else canonical(value).decode()


def _whole_number(form: Node) -> str:
    low, high = (
        _bound(form, "minimum", "exclusiveMinimum", 1),
        _bound(form, "maximum", "exclusiveMaximum", -1),
    )
    return f"a whole number{_range(low, high)}{_steps(form)}"


def _bound(form: Node, inclusive: str, exclusive: str, step: int) -> JsonValue:
    limit = form.get(exclusive)
    return limit + step if isinstance(limit, int) else form.get(inclusive)


def _number(form: Node) -> str:
    above, below = form.get("exclusiveMinimum"), form.get("exclusiveMaximum")
    limits = [f"above {_shown(above)}"] if above is not None else []
    limits += [f"below {_shown(below)}"] if below is not None else []
    sides = f" {' and '.join(limits)}" if limits else ""
    return f"a number{sides}{_range(form.get('minimum'), form.get('maximum'))}{_steps(form)}"


def _range(low: JsonValue, high: JsonValue) -> str:
    if low is not None and high is not None:
        return f" from {_shown(low)} to {_shown(high)}"
    if low is not None:
        return f" of at least {_shown(low)}"
    return f" of at most {_shown(high)}" if high is not None else ""


def _steps(form: Node) -> str:
    step = form.get("multipleOf")
    return f" in steps of {_shown(step)}" if step is not None else ""


def _shown(limit: JsonValue) -> str:
    return canonical(limit).decode()


def _text(form: Node) -> str:
    named = _FORMAT_PHRASES.get(str(form.get("format")))
    if named:
        return named
    pattern = form.get("pattern")
    matching = f" that matches {pattern}" if isinstance(pattern, str) else ""
    return f"a text{_count(form, 'minLength', 'maxLength', 'character')}{matching}"


def _list(form: Node) -> str:
    return f"a list{_count(form, 'minItems', 'maxItems', 'item')}"


def _count(form: Node, least: str, most: str, noun: str) -> str:
    low, high = form.get(least) or None, form.get(most)
    if low is None and high is None:
        return ""
    several = (high if high is not None else low) != 1
    if low == high:
        return f" of {_shown(low)} {noun}{'s' if several else ''}"
    between = _range(low, high).replace(" from ", " of ")
    return f"{between} {noun}{'s' if several else ''}"


_PHRASES: Mapping[str, Callable[[Node], str]] = {
    "integer": _whole_number,
    "number": _number,
    "string": _text,
    "boolean": lambda form: "true or false",
    "null": lambda form: "nothing (null)",
    "array": _list,
    "object": lambda form: "an object with fields",
}

_FORMAT_PHRASES = {
    "date": "a date like 2026-12-03",
    "date-time": "a date and time like 2026-12-03T09:00:00Z",
    "time": "a time like 09:00:00",
    "duration": "a duration like PT15M",
    "email": "an e-mail address",
    "uuid": "a UUID",
    "uri": "a web address like https://example.com",
}
