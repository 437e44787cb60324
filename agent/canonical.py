"""Faithful JSON: what may be captured, and the one text that it becomes.

Owns the bounds and the refusals: whatever two readers could take for two different things is refused here, not
guessed. Knows nothing of tools or of actions.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring
from typing import Any, cast

import rfc8785
from pydantic import JsonValue

MAX_DEPTH = 64
MAX_BYTES = 1_000_000
"""Of canonical JSON."""
MAX_NODES = 100_000
MAX_TEXT = 4 * MAX_BYTES
"""Of JSON as it arrives: with white space, and with escapes."""
MAX_INT = 2**53 - 1
"""Beyond it a reader that keeps numbers as doubles sees another number (RFC 7493, section 2.2)."""

_FIRST_EXPONENT = 1e21
"""From here on RFC 8785 writes an exponent. Below it, a whole float is written as an integer."""
_LONGEST_NUMBER = 25
_TOO_DEEP = f"nests deeper than {MAX_DEPTH} levels, or contains itself"
_TOO_LARGE = f"larger than {MAX_BYTES} bytes of JSON"
_TOO_MANY = f"more than {MAX_NODES} values"
_BIG_NUMBER = f"a whole number beyond ±{MAX_INT}; send it as a string"
_NOT_FINITE = "a number that is not finite"
_SURROGATE = "a text that is not valid Unicode"

# The closing quote is optional, so that text without one is passed over once and not from each of its quotes.
_BRACKETS_AND_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)


class NotFaithful(ValueError):
    """Data that could be read in two ways, or not at all. Says where and why, never the value."""


def parse_json(text: str | bytes) -> JsonValue:
    """Read JSON strictly: each object's keys once, finite numbers, whole numbers up to 2^53-1, valid Unicode.

    Raises NotFaithful.
    """
    if len(text) > MAX_TEXT:
        raise NotFaithful(f"larger than {MAX_TEXT} bytes of text")
    decoded = _decoded(text)
    if _depth(decoded) > MAX_DEPTH:
        raise NotFaithful(_TOO_DEEP)
    try:
        return copy_faithfully(_DECODER.decode(decoded))
    except json.JSONDecodeError as error:
        raise NotFaithful(f"not JSON (line {error.lineno}, column {error.colno})") from None


def copy_faithfully(value: object) -> JsonValue:
    """A deep, detached copy of plain data, each value read once.

    Plain is what JSON has, of exactly these types: None, bool, int, float, str, list, dict with str keys.
    Raises NotFaithful for anything else, and for what is out of bounds.
    """
    try:
        return _Copier().copy(value, 0)
    except _Unfaithful as found:
        raise NotFaithful(found.message) from None


def canonical(value: JsonValue) -> bytes:
    """The one JSON text of a value, by RFC 8785: equal values have equal bytes, whatever the order of keys.

    `1` and `1.0` are the same number; `1` and `true` are not the same value. Raises NotFaithful.
    """
    try:
        return rfc8785.dumps(cast(Any, value))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise NotFaithful("not faithful JSON; copy it with copy_faithfully to see where") from error
    except RecursionError:
        raise NotFaithful(_TOO_DEEP) from None


class _Unfaithful(Exception):
    """A problem on its way up; each level adds where it is."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.place: list[str] = []

    @property
    def message(self) -> str:
        place = ".".join(reversed(self.place))
        return f"{place}: {self.problem}" if place else self.problem


class _Copier:
    """One copy in the making: what is left of the bounds."""

    __slots__ = ("nodes", "room")

    def __init__(self) -> None:
        self.nodes = MAX_NODES
        self.room = MAX_BYTES

    def copy(self, value: object, depth: int) -> JsonValue:
        # Exact types: a subclass may answer differently each time it is read.
        kind = type(value)
        if kind is str:
            self._spend(_length(cast(str, value)))
        elif kind is dict or kind is list:
            return self._container(value, depth)
        elif kind is int:
            self._spend(_integer_length(cast(int, value)))
        elif kind is float:
            self._spend(_float_length(cast(float, value)))
        elif value is None or kind is bool:
            self._spend(5)
        else:
            raise _Unfaithful(f"a {kind.__name__} is not plain JSON")
        return cast(JsonValue, value)

    def _container(self, value: object, depth: int) -> JsonValue:
        if depth >= MAX_DEPTH:
            raise _Unfaithful(_TOO_DEEP)
        if type(value) is dict:
            return self._object(cast(dict[object, object], value), depth + 1)
        return self._array(cast(list[object], value), depth + 1)

    def _object(self, value: dict[object, object], depth: int) -> JsonValue:
        self._count(len(value))
        copied: dict[str, JsonValue] = {}
        for key, item in tuple(value.items()):
            if type(key) is not str:
                raise _Unfaithful(f"a key of type {type(key).__name__}; keys must be strings")
            try:
                self._spend(_length(key) + 2)
                copied[key] = self.copy(item, depth)
            except _Unfaithful as found:
                found.place.append(_shown(key))
                raise
        return copied

    def _array(self, value: list[object], depth: int) -> JsonValue:
        self._count(len(value))
        copied: list[JsonValue] = []
        for item in tuple(value):
            try:
                copied.append(self.copy(item, depth))
            except _Unfaithful as found:
                found.place.append(str(len(copied)))
                raise
        return copied

    def _count(self, nodes: int) -> None:
        self.nodes -= nodes
        if self.nodes < 0:
            raise _Unfaithful(_TOO_MANY)
        self._spend(nodes + 2)

    def _spend(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise _Unfaithful(_TOO_LARGE)


def _length(text: str) -> int:
    # The cheap bound first: nothing long is encoded only to be refused.
    if len(text) > MAX_BYTES:
        raise _Unfaithful(_TOO_LARGE)
    quoted = encode_basestring(text)
    if quoted.isascii():
        return len(quoted)
    try:
        return len(quoted.encode())
    except UnicodeEncodeError:
        raise _Unfaithful(_SURROGATE) from None


def _integer_length(number: int) -> int:
    if not -MAX_INT <= number <= MAX_INT:
        raise _Unfaithful(_BIG_NUMBER)
    return _LONGEST_NUMBER if number > 9_999 or number < 0 else 4


def _float_length(number: float) -> int:
    if not math.isfinite(number):
        raise _Unfaithful(_NOT_FINITE)
    if MAX_INT < abs(number) < _FIRST_EXPONENT:
        raise _Unfaithful(_BIG_NUMBER)
    return _LONGEST_NUMBER


def _shown(key: str) -> str:
    """A key as it may stand in a message: short, and on one line."""
    return ascii(key[:40])[1:-1] + ("…" if len(key) > 40 else "")


# --- reading ------------------------------------------------------------------------------------------------


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise NotFaithful("not UTF-8") from None


def _depth(text: str) -> int:
    """How deep the brackets nest, found without recursion: the parser behind it recurses."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _BRACKETS_AND_STRINGS.finditer(text):
        found = match.group()
        if found in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found in "]}":
            depth -= 1
    return deepest


def _object_of(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotFaithful("an object names one of its keys twice")
    return made


def _integer_of(digits: str) -> int:
    # Before int(): reading digits takes quadratic time, and Python refuses above 4,300 of them.
    if len(digits) > len(str(-MAX_INT)):
        raise NotFaithful(_BIG_NUMBER)
    return int(digits)


def _constant_of(name: str) -> JsonValue:
    raise NotFaithful(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of, parse_int=_integer_of, parse_constant=_constant_of, strict=True
)
