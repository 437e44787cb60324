"""A form for changing an action's arguments, made from the tool's schema; and reading what was typed into it.

Owns which control a field gets and what each expects, in words. Checks one field at a time; whether the whole fits is
the desk's to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import JsonValue

from agent.canonical import NotFaithful, parse_json
from agent.checkin import CheckIn
from agent.input_request import InputField
from agent.redaction import locked
from gateway.view import label, properties, written

Control = Literal["text", "integer", "number", "choice", "boolean", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field. `locked`: hidden from the approver, so it cannot be changed."""

    name: str
    label: str
    control: Control
    value: JsonValue
    shown: str
    choices: tuple[JsonValue, ...] = ()
    least: float | None = None
    most: float | None = None
    longest: int | None = None
    locked: bool = False

    @property
    def expects(self) -> str:
        """What is expected, as an error under the field says it."""
        match self.control:
            case "integer" | "number":
                return f"{'A whole number' if self.control == 'integer' else 'A number'}{_between(self)}."
            case "choice":
                return f"One of {', '.join(str(choice) for choice in self.choices)}."
            case "boolean":
                return "Yes or no."
            case "json":
                return "Valid JSON."
            case "text":
                return f"A text of at most {self.longest} characters." if self.longest else "A text."


class FieldError(ValueError):
    """What was typed does not fit the field; the message says what does."""


def fields_of(ask: CheckIn) -> tuple[FormField, ...]:
    """The form for an action, in the schema's order; a field that has no value yet is there as well."""
    arguments = ask.action.arguments
    hidden = {name.split(".")[0] for name in locked(ask.redact, arguments).names}
    declared = properties(ask.schema)
    names = [*declared, *sorted(set(arguments) - set(declared))]
    return tuple(
        _field(name, declared.get(name, {}), arguments.get(name), ask, is_locked=name in hidden)
        for name in names
    )


def field_of(asked: InputField) -> FormField:
    """The form's field for one value of an input request."""
    control: Control = "choice" if asked.enum else _CONTROLS.get(asked.type, "text")
    return FormField(
        name=asked.id,
        label=asked.description or asked.id,
        control=control,
        value=None,
        shown="",
        choices=tuple(asked.enum or ()),
        longest=4096,
    )


def read_field(field: FormField, typed: str) -> JsonValue:
    """The value that was typed. Raises FieldError."""
    if field.locked:
        raise FieldError("Can't be changed.")
    match field.control:
        case "text":
            return _text(field, typed)
        case "choice":
            return _choice(field, typed)
        case "boolean":
            return _boolean(field, typed)
        case "integer" | "number":
            return _number(field, typed)
        case "json":
            return _json(field, typed)


_CONTROLS: Mapping[str, Control] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


def _field(
    name: str, schema: Mapping[str, JsonValue], value: JsonValue, ask: CheckIn, *, is_locked: bool
) -> FormField:
    choices = schema.get("enum")
    control: Control = (
        "choice" if isinstance(choices, list) else _CONTROLS.get(str(schema.get("type")), "json")
    )
    return FormField(
        name=name,
        label=label(name, ask.schema),
        control=control,
        value=value,
        shown="" if is_locked else written(value),
        choices=tuple(choices) if isinstance(choices, list) else (),
        least=_bound(schema, "minimum"),
        most=_bound(schema, "maximum"),
        longest=cast("int | None", schema.get("maxLength")),
        locked=is_locked,
    )


def _bound(schema: Mapping[str, JsonValue], key: str) -> float | None:
    bound = schema.get(key)
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else None


def _between(field: FormField) -> str:
    if field.least is not None and field.most is not None:
        return f" from {field.least:g} to {field.most:g}"
    if field.least is not None:
        return f" of at least {field.least:g}"
    return f" of at most {field.most:g}" if field.most is not None else ""


def _text(field: FormField, typed: str) -> str:
    if field.longest is not None and len(typed) > field.longest:
        raise FieldError(field.expects)
    return typed


def _choice(field: FormField, typed: str) -> JsonValue:
    for choice in field.choices:
        if typed.strip() == (choice if isinstance(choice, str) else json.dumps(choice)):
            return choice
    raise FieldError(field.expects)


def _boolean(field: FormField, typed: str) -> bool:
    answer = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}.get(
        typed.strip().lower()
    )
    if answer is None:
        raise FieldError(field.expects)
    return answer


def _number(field: FormField, typed: str) -> JsonValue:
    try:
        number = parse_json(typed.strip().replace("_", ""))
    except NotFaithful as error:
        raise FieldError(field.expects) from error
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole and not (field.control == "number" and isinstance(number, float)):
        raise FieldError(field.expects)
    value = cast("int | float", number)
    if (field.least is not None and value < field.least) or (field.most is not None and value > field.most):
        raise FieldError(field.expects)
    return value


def _json(field: FormField, typed: str) -> JsonValue:
    try:
        return parse_json(typed)
    except NotFaithful as error:
        raise FieldError(field.expects) from error
