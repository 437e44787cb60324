"""Arguments against a stored JSON Schema, without the tool's code: what is expected, and where.

Owns which field a problem belongs to. A value that was found is never named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, cast

from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import SchemaError, ValidationError
from pydantic import AnyUrl, JsonValue, StringConstraints, TypeAdapter
from pydantic import ValidationError as NotValid
from pydantic_core import SchemaError as BadPattern
from referencing import Registry
from referencing.exceptions import Unresolvable

from agent.canonical import canonical
from agent.expectation import expectation
from agent.schema import Node, child

MOST_PROBLEMS = 32

BROKEN = "The stored schema cannot be read, so nothing can be checked against it."
UNKNOWN_FIELD = "Not a field of this tool."


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (dotted, `""` for the whole), and what was expected there."""

    path: str
    expectation: str
    missing: bool = False
    unknown: bool = False

    @property
    def sentence(self) -> str:
        """As it stands under a form's field."""
        if self.unknown:
            return UNKNOWN_FIELD
        return self.expectation[:1].upper() + self.expectation[1:] + "."

    @property
    def complaint(self) -> str:
        """As a model reads it."""
        place = self.path or "arguments"
        if self.unknown:
            return f"{place}: not an argument of this tool"
        return f"{place}: {'missing; ' if self.missing else ''}{self.expectation} expected"


def check_schema(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> dict[str, str]:
    """What is wrong with arguments, by path, in full sentences; empty when nothing is.

    A schema that cannot be read refuses everything: the answer is then under `""`.
    """
    try:
        Draft202012Validator.check_schema(schema)
        problems = problems_of(schema, dict(arguments))
    except (SchemaError, Unresolvable, RecursionError, re.error, TypeError, AttributeError):
        return {"": BROKEN}
    sentences: dict[str, str] = {}
    for problem in problems:
        # The first of a path's problems: each later one repeats it or follows from it.
        sentences.setdefault(problem.path, problem.sentence)
    return sentences


def problems_of(schema: Node, arguments: JsonValue) -> list[Problem]:
    """What is wrong, in the order of the schema; at most the first few."""
    checker = _Validator(schema, format_checker=_FORMATS, registry=_NO_OTHER_DOCUMENTS)
    found = (problem for error in checker.iter_errors(arguments) for problem in _problems(schema, error))
    return list(dict.fromkeys(islice(found, MOST_PROBLEMS)))


# --- finding ------------------------------------------------------------------------------------------------


def _problems(root: Node, error: ValidationError) -> Iterator[Problem]:
    path = [str(step) for step in error.absolute_path]
    node = cast(Node, error.schema)
    if error.validator in ("anyOf", "oneOf") and (deeper := _branch(error)):
        for inner in deeper:
            yield from _problems(root, inner)
    elif error.validator == "required":
        yield from _missing(root, node, path, cast(Mapping[str, JsonValue], error.instance))
    elif error.validator == "additionalProperties" and error.validator_value is False:
        declared = child(node, "properties") or {}
        for name in cast(Mapping[str, JsonValue], error.instance):
            if name not in declared:
                yield Problem(_dotted([*path, name]), UNKNOWN_FIELD, unknown=True)
    else:
        yield Problem(_dotted(path), expectation(root, node))


def _missing(root: Node, node: Node, path: list[str], found: Mapping[str, JsonValue]) -> Iterator[Problem]:
    properties = child(node, "properties") or {}
    for name in cast(list[str], node["required"]):
        if name not in found:
            wanted = expectation(root, child(properties, name) or {})
            yield Problem(_dotted([*path, name]), wanted, missing=True)


def _branch(error: ValidationError) -> list[ValidationError]:
    """The errors of the one alternative that the value was meant to be: the only one whose own type fits."""
    branches: dict[object, list[ValidationError]] = {}
    for inner in error.context or []:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    meant = [errors for errors in branches.values() if not any(map(_is_other_kind, errors))]
    return meant[0] if len(meant) == 1 and len(branches) > 1 else []


def _is_other_kind(error: ValidationError) -> bool:
    return not error.relative_path and error.validator in ("type", "enum", "const")


def _dotted(path: Sequence[str]) -> str:
    """A path as it may stand in a message: names short, and on one line."""
    return ".".join(ascii(step[:64])[1:-1] if not step[:64].isprintable() else step[:64] for step in path)


# --- the validator --------------------------------------------------------------------------------------------

_NO_OTHER_DOCUMENTS: Registry[Any] = Registry()
"""A stored schema that refers to an address must not make us fetch it."""

_FORMATS = FormatChecker(("email", "ipv4", "ipv6", "uuid"))

_READ_BY_PYDANTIC: Mapping[str, type] = {
    "date": date,
    "date-time": datetime,
    "time": time,
    "duration": timedelta,
    "uri": AnyUrl,
}
"""Formats as the tools themselves read them: what a form accepts, the tool takes."""


def _reads(kind: type) -> Callable[[object], bool]:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    def check(value: object) -> bool:
        if isinstance(value, str):
            adapter.validate_json(canonical(value), strict=True)
        return True

    return check


for _name, _kind in _READ_BY_PYDANTIC.items():
    _FORMATS.checks(_name, raises=NotValid)(_reads(_kind))


def _pattern(validator: Any, pattern: str, instance: object, schema: Node) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError("does not match")


def _matches(pattern: str, text: str) -> bool:
    """By pydantic's engine, which needs linear time and which the tool itself uses; by Python's where that cannot."""
    adapter = _pattern_adapter(pattern)
    if adapter is None:
        return re.search(pattern, text) is not None
    try:
        adapter.validate_python(text)
    except NotValid:
        return False
    return True


@lru_cache(maxsize=256)
def _pattern_adapter(pattern: str) -> TypeAdapter[str] | None:
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except BadPattern:
        return None


# jsonschema's types leave `extend` open.
_Validator: Any = cast(Any, validators).extend(Draft202012Validator, {"pattern": _pattern})
