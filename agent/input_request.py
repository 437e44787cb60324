"""Input requests: typed values are missing, and a person is asked for them. Data collection, never consent.

Owns the declaration that a collecting tool returns, the request that a person sees, and the rules both obey. Knows
nothing of who is asked or of how a form looks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import JsonValue

from agent.decision import InputCancelled, InputReceived
from agent.ids import AskKey

MAX_FIELDS = 32
MAX_STRING = 4_096
MAX_CHOICES = 100
MAX_CONTEXT = 16_384
MAX_CONTEXT_DEPTH = 32

FieldType = Literal["string", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class InputField:
    """One value that is asked for. `enum` lists the only values taken; each is of `type`."""

    id: str
    type: FieldType = "string"
    description: str = ""
    enum: tuple[str | float | bool, ...] | None = None
    required: bool = True


@dataclass(frozen=True, slots=True)
class InputDeclaration:
    """What a collecting tool returns to say that values are missing. Made by `request_input`."""

    id: str
    question: str
    fields: tuple[InputField, ...]
    supplied: dict[str, JsonValue]
    context: dict[str, JsonValue]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(f.id for f in self.fields if f.required and f.id not in self.supplied)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """Typed values are missing. Data collection, never consent.

    `request_id` is made at run time, so that a stale reply never matches. `origins` tells of each accepted value
    whether the collecting tool brought it (`declaration`) or a person did (`response`).
    """

    key: AskKey
    call_id: str
    tool: str
    request_id: str
    declared_id: str
    question: str
    fields: tuple[InputField, ...]
    values: dict[str, JsonValue]
    origins: dict[str, Literal["declaration", "response"]]
    context: dict[str, JsonValue]
    original_request: str = ""
    kind: Literal["input_request"] = "input_request"

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(f.id for f in self.fields if f.required and f.id not in self.values)

    def result(self) -> dict[str, JsonValue]:
        """The complete answer as the collecting tool's result."""
        return {
            "status": "input_received",
            "request_id": self.request_id,
            "values": dict(self.values),
            "origins": dict(self.origins),
            "context": dict(self.context),
            "origin": {"original_request": self.original_request, "tool_call_id": self.call_id},
        }


class InputRequestError(ValueError):
    """A declaration or a reply that breaks the rules of input requests. The checkpoint is untouched."""

    code = "ERR_INPUT_REQUEST_INVALID"

    def __init__(self, problem: str) -> None:
        super().__init__(f"{self.code}: {problem}")


def request_input(
    id: str,
    question: str,
    fields: list[InputField] | tuple[InputField, ...],
    *,
    supplied: Mapping[str, JsonValue] | None = None,
    context: Mapping[str, JsonValue] | None = None,
) -> InputDeclaration:
    """Declare, as a tool's return value, that typed values are missing.

    The run pauses if at least one required field has no value in `supplied`; else the tool should simply go on, and
    a declaration with nothing missing is taken as its result without a pause. `context` is bounded JSON (16,384
    characters, 32 levels) that comes back with the answer and cannot be replaced by it.

    Raises InputRequestError for a declaration outside the bounds.
    """
    declaration = InputDeclaration(id, question, tuple(fields), dict(supplied or {}), dict(context or {}))
    _check_fields(declaration.fields)
    _check_context(declaration.context)
    by_id = {f.id: f for f in declaration.fields}
    for name, value in declaration.supplied.items():
        if name not in by_id:
            raise InputRequestError(f"supplied value {name!r} is not one of the fields {sorted(by_id)}")
        check_value(by_id[name], value)
    return declaration


def accept(request: InputRequest, reply: InputReceived) -> InputRequest:
    """The request with a reply's values added. Raises InputRequestError, and changes nothing, for a bad reply.

    No coercion: `"2026"` is not a number. A partial reply is fine; what is still missing stays missing.
    """
    _check_request_id(request, reply.request_id)
    if not reply.values:
        raise InputRequestError("a reply needs at least one value")
    by_id = {f.id: f for f in request.fields}
    for name, value in reply.values.items():
        if name not in by_id:
            raise InputRequestError(f"unknown field {name!r}; expected one of {sorted(by_id)}")
        check_value(by_id[name], value)
    origins: dict[str, Literal["declaration", "response"]] = dict.fromkeys(reply.values, "response")
    return replace(request, values={**request.values, **reply.values}, origins={**request.origins, **origins})


def check_cancel(request: InputRequest, reply: InputCancelled) -> None:
    """Refuse a cancellation that names another request."""
    _check_request_id(request, reply.request_id)


def check_value(field: InputField, value: JsonValue) -> None:
    """Refuse a value that is not of the field's type, out of bounds, or not one of its choices."""
    if not _is_of(field.type, value):
        raise InputRequestError(f"field {field.id!r}: expected a {field.type}, received {_json_type(value)}")
    if isinstance(value, str) and not value:
        raise InputRequestError(f"field {field.id!r}: an empty text is not an answer")
    if isinstance(value, str) and len(value) > MAX_STRING:
        raise InputRequestError(f"field {field.id!r}: at most {MAX_STRING} characters")
    if field.enum is not None and not any(_same(value, choice) for choice in field.enum):
        raise InputRequestError(f"field {field.id!r}: expected one of {list(field.enum)}")


def _check_request_id(request: InputRequest, request_id: str) -> None:
    if request_id != request.request_id:
        raise InputRequestError("the reply names another request; load the current one and answer that")


def _check_fields(fields: tuple[InputField, ...]) -> None:
    if not 1 <= len(fields) <= MAX_FIELDS:
        raise InputRequestError(f"expected 1 to {MAX_FIELDS} fields, found {len(fields)}")
    ids = [f.id for f in fields]
    if len(set(ids)) != len(ids) or not all(ids):
        raise InputRequestError(f"field ids must be unique and not empty: {ids}")
    for item in fields:
        _check_field(item)


def _check_field(field: InputField) -> None:
    if field.type not in ("string", "number", "boolean"):
        raise InputRequestError(f"field {field.id!r}: type must be string, number or boolean")
    if len(field.description) > MAX_STRING:
        raise InputRequestError(f"field {field.id!r}: description of at most {MAX_STRING} characters")
    if field.enum is None:
        return
    if not 1 <= len(field.enum) <= MAX_CHOICES:
        raise InputRequestError(f"field {field.id!r}: expected 1 to {MAX_CHOICES} choices")
    if not all(_is_of(field.type, choice) for choice in field.enum):
        raise InputRequestError(f"field {field.id!r}: every choice must be a {field.type}")


def _check_context(context: dict[str, JsonValue]) -> None:
    if _depth(context) > MAX_CONTEXT_DEPTH:
        raise InputRequestError(f"context nests deeper than {MAX_CONTEXT_DEPTH} levels")
    try:
        text = json.dumps(context, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputRequestError("context must be plain JSON") from error
    if len(text) > MAX_CONTEXT:
        raise InputRequestError(f"context of at most {MAX_CONTEXT} characters of JSON, found {len(text)}")


def _depth(value: Any, level: int = 0) -> int:
    if level > MAX_CONTEXT_DEPTH or not isinstance(value, dict | list):
        return level
    children: list[Any] = list(value.values()) if isinstance(value, dict) else value  # pyright: ignore
    return max((_depth(child, level + 1) for child in children), default=level + 1)


def _is_of(type_: FieldType, value: object) -> bool:
    match type_:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _same(value: JsonValue, choice: object) -> bool:
    """`true` is not `1`, whatever Python says."""
    return isinstance(value, bool) == isinstance(choice, bool) and value == choice


def _json_type(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case str():
            return "a text"
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return "a number"
