"""Conditions on arguments, as data: `{field, op, value}`, `all`, `any`.

Owns their meaning and the refusal of what is not one. Evaluating is pure, total and never runs code. What is missing,
null or of another type makes a comparison false, `ne` too: a rule that cannot be judged does not apply.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never, cast

from pydantic import JsonValue

from gateway.errors import Terminal

MAX_DEPTH = 32
"""How deep `all` and `any` may nest."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One value in the arguments, compared. `path` is the field's dot path, split."""

    path: tuple[str, ...]
    op: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Always:
    """No condition."""


Condition: TypeAlias = Comparison | AllOf | AnyOf | Always


class InvalidCondition(Terminal):
    """Not a condition. `path` leads to what is wrong, `problem` says what was expected."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def parse_condition(given: object, path: str = "when") -> Condition:
    """Read a condition. Raises InvalidCondition, naming the place."""
    return _parse(given, path, depth=0)


def holds(condition: Condition, arguments: Mapping[str, JsonValue]) -> bool:
    match condition:
        case Comparison(path=path, op=op, value=value):
            return _compare(_find(arguments, path), op, value)
        case AllOf(conditions=conditions):
            return all(holds(each, arguments) for each in conditions)
        case AnyOf(conditions=conditions):
            return any(holds(each, arguments) for each in conditions)
        case Always():
            return True
        case _:
            assert_never(condition)


# --- reading ----------------------------------------------------------------------------------------------------


def _parse(given: object, path: str, *, depth: int) -> Condition:
    if not isinstance(given, Mapping):
        raise InvalidCondition(path, 'expected a table such as { field = "amount", op = "gt", value = 1000 }')
    table = cast("Mapping[str, object]", given)
    if depth > MAX_DEPTH:
        raise InvalidCondition(path, f"expected at most {MAX_DEPTH} levels of all and any")
    match sorted(table):
        case ["all"]:
            return AllOf(_parse_each(table["all"], f"{path}.all", depth=depth + 1))
        case ["any"]:
            return AnyOf(_parse_each(table["any"], f"{path}.any", depth=depth + 1))
        case ["field", "op", "value"]:
            return _parse_comparison(table, path)
        case keys:
            found = ", ".join(keys) or "none"
            raise InvalidCondition(
                path, f"expected the keys field, op and value, or all, or any; got {found}"
            )


def _parse_each(given: object, path: str, *, depth: int) -> tuple[Condition, ...]:
    # An empty `all` would hold for everything, which nobody writes on purpose.
    if not isinstance(given, list | tuple) or not given:
        raise InvalidCondition(path, "expected a list of at least one condition")
    each = cast("Sequence[object]", given)
    return tuple(_parse(one, f"{path}[{place}]", depth=depth) for place, one in enumerate(each))


def _parse_comparison(table: Mapping[str, object], path: str) -> Comparison:
    field, op, value = table["field"], table["op"], table["value"]
    if not isinstance(field, str) or not all(field.split(".")):
        raise InvalidCondition(
            f"{path}.field", "expected a path such as amount, customer.country or items.0.price"
        )
    if not isinstance(op, str) or op not in _OPS:
        raise InvalidCondition(f"{path}.op", f"expected one of {', '.join(_OPS)}")
    expected = _OPS[op].takes(value)
    if expected is not None:
        raise InvalidCondition(f"{path}.value", f"{op} takes {expected}")
    return Comparison(tuple(field.split(".")), op, cast("JsonValue", value))


# --- finding ----------------------------------------------------------------------------------------------------


def _find(value: JsonValue | Mapping[str, JsonValue], path: tuple[str, ...]) -> JsonValue:
    """What the path leads to; None where it leads nowhere, which is false for every op, as a null is."""
    for step in path:
        match value:
            case Mapping():
                value = cast("Mapping[str, JsonValue]", value).get(step)
            case list():
                value = _item(value, step)
            case _:
                return None
    return cast("JsonValue", value)


def _item(items: list[JsonValue], step: str) -> JsonValue:
    # Only the plain form: "٣", "+1", "-1" and "01" are names, not places.
    plain = step.isascii() and step.isdigit() and (step == "0" or not step.startswith("0"))
    return items[int(step)] if plain and len(step) < 10 and int(step) < len(items) else None


# --- comparing --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Op:
    takes: Callable[[object], str | None]
    """None for a value that the op can be given; else what it expects."""
    compare: Callable[[JsonValue, JsonValue], bool]


def _compare(found: JsonValue, op: str, value: JsonValue) -> bool:
    return found is not None and _OPS[op].compare(found, value)


def _type(value: object) -> str | None:
    """The JSON type. True is not 1; numbers are numbers, whole or not."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "number"
        case float():
            return "number" if math.isfinite(value) else None
        case str():
            return "text"
        case list():
            return "list"
        case dict():
            return "table"
        case _:
            return None


def _same(one: JsonValue, other: JsonValue) -> bool:
    if _type(one) != _type(other) or _type(one) is None:
        return one is None and other is None
    match one, other:
        case list(), list():
            return len(one) == len(other) and all(map(_same, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
        case _:
            return one == other


def _differs(found: JsonValue, value: JsonValue) -> bool:
    return _type(found) == _type(value) and _type(found) is not None and not _same(found, value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[JsonValue, JsonValue], bool]:
    def ordered(found: JsonValue, value: JsonValue) -> bool:
        return _type(found) == _type(value) and _type(found) in ("number", "text") and compare(found, value)

    return ordered


def _is_in(found: JsonValue, value: JsonValue) -> bool:
    return isinstance(value, list) and any(_same(found, each) for each in value)


def _contains(found: JsonValue, value: JsonValue) -> bool:
    match found:
        case str():
            return isinstance(value, str) and value in found
        case list():
            return any(_same(each, value) for each in found)
        case _:
            return False


def _takes_value(value: object) -> str | None:
    return None if _type(value) is not None else "a text, a number, true or false, a list or a table"


def _takes_ordered(value: object) -> str | None:
    return None if _type(value) in ("number", "text") else "a number or a text"


def _takes_list(value: object) -> str | None:
    return None if isinstance(value, list) and value else "a list of at least one value"


_OPS: Mapping[str, _Op] = {
    "eq": _Op(_takes_value, _same),
    "ne": _Op(_takes_value, _differs),
    "gt": _Op(_takes_ordered, _ordered(operator.gt)),
    "gte": _Op(_takes_ordered, _ordered(operator.ge)),
    "lt": _Op(_takes_ordered, _ordered(operator.lt)),
    "lte": _Op(_takes_ordered, _ordered(operator.le)),
    "in": _Op(_takes_list, _is_in),
    "contains": _Op(_takes_value, _contains),
}
