"""Where paths lead in a JSON Schema of arguments.

Owns resolving and following. Knows nothing of values: those are checked in `schema_check.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import cast

from pydantic import JsonValue

Node = Mapping[str, JsonValue]

_MOST_REFERENCES = 32
"""That lead from one to the next. More is a circle."""


class Reach(IntEnum):
    """What a schema tells of a path; where it offers several forms, the best of them counts."""

    MISSING = 0
    """No value can be there."""
    UNKNOWN = 1
    """The schema leaves open what is there."""
    FOUND = 2


def reach(root: Node, steps: Sequence[str], *, through_lists: bool) -> Reach:
    """Whether a path leads to a declared field. `through_lists` goes on into a list's elements without a step."""
    return _reach(root, root, tuple(steps), through_lists)


def forms(root: Node, node: Node) -> list[Node]:
    """The schemas of which a value may satisfy one: references resolved, alternatives side by side."""
    return list(_forms(root, node, _MOST_REFERENCES))


def child(node: Node, key: str) -> Node | None:
    """A keyword's value where it is a schema of its own."""
    value = node.get(key)
    return value if isinstance(value, dict) else None


def _reach(root: Node, node: Node, steps: tuple[str, ...], through_lists: bool) -> Reach:  # noqa: FBT001
    if not steps:
        return Reach.FOUND
    reached = (_reach_in(root, form, steps, through_lists) for form in forms(root, node))
    return max(reached, default=Reach.UNKNOWN)


def _reach_in(root: Node, form: Node, steps: tuple[str, ...], through_lists: bool) -> Reach:  # noqa: FBT001
    if form.get("type") == "array" and through_lists:
        return max(_reach(root, item, steps, through_lists) for item in _items(form))
    field = child(cast(Node, form.get("properties") or {}), steps[0])
    if field is not None:
        return _reach(root, field, steps[1:], through_lists)
    others = form.get("additionalProperties")
    if form.get("type") == "object" and isinstance(others, dict):
        return min(Reach.UNKNOWN, _reach(root, others, steps[1:], through_lists))
    kind = form.get("type", "object")
    closed = (
        others is False or (isinstance(kind, str) and kind != "object") or "enum" in form or "const" in form
    )
    return Reach.MISSING if closed else Reach.UNKNOWN


def _items(form: Node) -> list[Node]:
    prefix = form.get("prefixItems")
    items: list[Node] = (
        [item for item in prefix if isinstance(item, dict)] if isinstance(prefix, list) else []
    )
    rest = child(form, "items")
    return [*items, rest] if rest is not None else items or [{}]


def _forms(root: Node, node: Node, references: int) -> Iterator[Node]:
    reference = node.get("$ref")
    if isinstance(reference, str):
        if references and (named := _resolved(root, reference)) is not None:
            yield from _forms(root, named, references - 1)
        else:
            yield {}
        return
    alternatives = [
        alternative for key in ("anyOf", "oneOf", "allOf") for alternative in _list(node.get(key))
    ]
    if not alternatives or "properties" in node:
        yield node
    for alternative in alternatives:
        yield from _forms(root, alternative, references)


def _list(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _resolved(root: Node, reference: str) -> Node | None:
    """The definition that a reference within the same document names."""
    if not reference.startswith("#/$defs/"):
        return None
    name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
    return child(child(root, "$defs") or {}, name)
