"""A tool's reference to a screen of its application's own: ids and small props, never markup.

Owns the check of the reference. `Component` itself rides the ask (`checkin.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue

from agent.canonical import NotFaithful, canonical, copy_faithfully
from agent.checkin import Component
from agent.tool_error import ToolDefinitionError

_KEYS = frozenset({"component_id", "props"})
LARGEST_PROPS = 4_096
"""Bytes of canonical JSON."""
MARKUP = frozenset({"markup", "html", "innerhtml", "dangerouslysetinnerhtml"})
"""Names of props that would carry markup, whatever their case."""


def read_component(given: Component | Mapping[str, object] | None, *, gated: bool) -> Component | None:
    """Check a reference. Raises ToolDefinitionError."""
    if given is None:
        return None
    if not gated:
        raise ToolDefinitionError("check_in_component collects a check-in's decision: declare check_in too")
    component_id, props = _parts(given)
    if not isinstance(component_id, str) or not component_id.strip():
        raise ToolDefinitionError("check_in_component: a component_id is required")
    return Component(component_id, _props(props))


def _parts(given: object) -> tuple[object, object]:
    if isinstance(given, Component):
        return given.component_id, given.props
    if not isinstance(given, Mapping) or not set(cast(Mapping[object, object], given)) <= _KEYS:
        raise ToolDefinitionError("check_in_component: a component_id and props expected, nothing else")
    given = cast(Mapping[str, object], given)
    return given.get("component_id"), given.get("props", {})


def _props(given: object) -> dict[str, JsonValue]:
    try:
        props = copy_faithfully(given)
    except NotFaithful as error:
        raise ToolDefinitionError(f"check_in_component: props must be plain JSON: {error}") from error
    if not isinstance(props, dict) or len(canonical(props)) > LARGEST_PROPS:
        raise ToolDefinitionError(
            f"check_in_component: props must be an object of at most {LARGEST_PROPS} bytes"
        )
    for name in _names(props):
        if name.casefold() in MARKUP:
            raise ToolDefinitionError(f"check_in_component: {name!r} is markup; props are data")
    return props


def _names(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
