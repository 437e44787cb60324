"""A function's parameters as the arguments of a tool: JSON Schema, strict validation, and back to Python values.

Owns the reading of a signature, and its refusals. Validation is strict and on JSON: `"5000"` is no number, `true` is
not `1`, and a field that nobody declared is refused at every level, so that what is shown is all there is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError, core_schema

from agent.canonical import NotFaithful, canonical, copy_faithfully
from agent.docstring import Docstring
from agent.schema_check import problems_of
from agent.tool_error import InvalidArguments, ToolDefinitionError

_OBJECTIONS: Mapping[str, str] = {
    "decimal_type": "a decimal number expected",
    "decimal_parsing": "a decimal number expected",
    "decimal_max_digits": "a decimal number with fewer digits expected",
    "decimal_max_places": "a decimal number with fewer decimal places expected",
    "decimal_whole_digits": "a decimal number with fewer digits expected",
    "date_past": "a date in the past expected",
    "date_future": "a date in the future expected",
    "datetime_past": "a time in the past expected",
    "datetime_future": "a time in the future expected",
    "timezone_aware": "a time with a time zone expected",
    "timezone_naive": "a time without a time zone expected",
}
"""What pydantic checks and JSON Schema cannot say. Its own messages are not passed on: some hold the value."""
_REFUSED = "refused by the tool's own rule"
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """A function's parameters. `context` names the one that gets the call's context, if there is one."""

    schema: dict[str, JsonValue]
    context: str | None
    model: type[BaseModel]
    names: tuple[str, ...]

    def validate(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Normalized arguments, with the defaults: what is shown, approved, and given back to `python_values`.

        Validating them again gives the same. Raises InvalidArguments.
        """
        try:
            given = copy_faithfully(dict(arguments))
            normal = self._normalized(given)
            # What is approved is validated again before it runs: by then it is too late to find out that it changes.
            if normal != given and self._normalized(normal) != normal:
                raise InvalidArguments(
                    "the arguments change each time they are read; the tool's types are at fault"
                )
        except NotFaithful as error:
            raise InvalidArguments(str(error)) from None
        return normal

    def python_values(self, arguments: Mapping[str, JsonValue]) -> dict[str, object]:
        """Normalized arguments as the values that the function expects. Raises InvalidArguments."""
        read = self._read(dict(arguments))
        return {name: getattr(read, _attribute(at)) for at, name in enumerate(self.names)}

    def _normalized(self, arguments: JsonValue) -> dict[str, JsonValue]:
        plain = self._read(arguments).model_dump(mode="json", by_alias=True)
        return cast(dict[str, JsonValue], copy_faithfully(plain))

    def _read(self, arguments: JsonValue) -> BaseModel:
        try:
            # As JSON, because in strict mode Python values would have to be dates and enums already; as canonical
            # JSON, because 1.0 is a whole number there.
            return self.model.model_validate_json(canonical(arguments), strict=True, extra="forbid")
        except ValidationError as error:
            raise InvalidArguments(self._complaint(arguments, error)) from None

    def _complaint(self, arguments: JsonValue, error: ValidationError) -> str:
        """What is wrong, in the schema's terms; where the schema has no objection, which argument and why."""
        problems = problems_of(self.schema, arguments)
        if problems:
            return "; ".join(problem.complaint for problem in problems)
        found = error.errors(include_input=False, include_context=False, include_url=False)[0]
        return f"{_argument(found['loc'], self.names)}: {_OBJECTIONS.get(found['type'], _REFUSED)}"


def read_parameters(
    function: Callable[..., object], doc: Docstring, *, name: str, context: type
) -> Parameters:
    """Read a signature. Raises ToolDefinitionError for what cannot be a tool's."""
    signature = inspect.signature(function)
    hints = _hints(function)
    for parameter in signature.parameters.values():
        _check_parameter(parameter, hints)
    contexts = [key for key in signature.parameters if hints[key] is context]
    if len(contexts) > 1:
        raise ToolDefinitionError(f"one {context.__name__} is enough: {', '.join(contexts)}")
    declared = {key: p for key, p in signature.parameters.items() if key not in contexts}
    fields = [_field(p, hints[key], doc) for key, p in declared.items()]
    model = _model(name, fields)
    made = Parameters(_schema(model), contexts[0] if contexts else None, model, tuple(declared))
    _check_defaults(made, declared)
    return made


def _argument(place: tuple[int | str, ...], names: tuple[str, ...]) -> str:
    """Which argument an error is about. What follows in its place may be names of types, which nobody passed."""
    return str(place[0]) if place and place[0] in names else "arguments"


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise ToolDefinitionError(
            f"its types cannot be resolved ({error}): define and import them at the module's level, "
            "not in a function and not under TYPE_CHECKING"
        ) from error


def _check_parameter(parameter: inspect.Parameter, hints: Mapping[str, object]) -> None:
    if parameter.kind not in _BY_KEYWORD:
        raise ToolDefinitionError(
            f"parameter {str(parameter).split(':')[0]!r}: arguments are passed by name, so *args, **kwargs and "
            "positional-only parameters cannot be filled"
        )
    if parameter.name not in hints:
        raise ToolDefinitionError(f"parameter {parameter.name!r}: a type is required")
    if isinstance(parameter.default, FieldInfo):
        raise ToolDefinitionError(f"parameter {parameter.name!r}: put Field(...) into Annotated[...]")


def _field(parameter: inspect.Parameter, hint: Any, doc: Docstring) -> tuple[Any, FieldInfo]:
    said = FieldInfo.from_annotation(hint)
    if said.alias or said.validation_alias or said.serialization_alias:
        raise ToolDefinitionError(f"parameter {parameter.name!r}: an alias; rename the parameter instead")
    options: dict[str, Any] = {"alias": parameter.name}
    if said.description is None and parameter.name in doc.parameters:
        options["description"] = doc.parameters[parameter.name]
    if parameter.default is not parameter.empty:
        options["default"] = parameter.default
    return hint, Field(**options)


def _model(name: str, fields: list[tuple[Any, FieldInfo]]) -> type[BaseModel]:
    definitions: dict[str, Any] = {_attribute(at): field for at, field in enumerate(fields)}
    try:
        return create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **definitions)
    except (PydanticUserError, PydanticSchemaGenerationError, TypeError) as error:
        raise ToolDefinitionError(f"a parameter's type has no JSON form: {_first_line(error)}") from error


def _attribute(at: int) -> str:
    """A name of our own, and the parameter's as its alias: `schema` or `_id` could not be a model's attribute."""
    return f"p{at}"


def _schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    try:
        schema = copy_faithfully(model.model_json_schema(schema_generator=_Schema))
    except (PydanticUserError, NotFaithful) as error:
        raise ToolDefinitionError(f"a parameter's type has no JSON Schema: {_first_line(error)}") from error
    # Masked when it is dumped, a secret would reach the tool as asterisks. Within a string these quotes are escaped.
    if b'"writeOnly":true' in canonical(schema):
        raise ToolDefinitionError(
            "a secret type is masked on its way to the tool: use str, and redact=[...] to hide it"
        )
    return cast(dict[str, JsonValue], schema)


def _check_defaults(parameters: Parameters, declared: Mapping[str, inspect.Parameter]) -> None:
    """A default is shown and approved like any other argument: it must be one that the tool takes."""
    partial = parameters.model.model_construct()
    for at, name in enumerate(declared):
        if declared[name].default is inspect.Parameter.empty:
            continue
        try:
            plain = partial.model_dump(mode="json", by_alias=True, include={_attribute(at)}, warnings=False)
            problems = problems_of(parameters.schema, copy_faithfully(plain))
        except (PydanticSerializationError, NotFaithful, TypeError, ValueError) as error:
            raise ToolDefinitionError(f"parameter {name!r}: its default has no JSON form") from error
        for problem in problems:
            if problem.path.split(".")[0] == name:
                raise ToolDefinitionError(f"parameter {name!r}: its default is not {problem.expectation}")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


class _Schema(GenerateJsonSchema):
    """pydantic's JSON Schema, without titles that nobody wrote, closed at every level."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _closed(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema), schema.get("cls"))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return _untitled(super().enum_schema(schema), schema["cls"])

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        raise ToolDefinitionError("a set has no order, and so no one text to approve: use a list")

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        raise ToolDefinitionError("a set has no order, and so no one text to approve: use a list")

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise ToolDefinitionError(detail)


def _closed(schema: JsonSchemaValue, owner: type | None) -> JsonSchemaValue:
    if "properties" in schema or schema.get("type") == "object":
        schema = {**schema, "additionalProperties": False}
    return _untitled(schema, owner)


def _untitled(schema: JsonSchemaValue, owner: type | None) -> JsonSchemaValue:
    """Without the class's name as a title: people would read it as a field's label."""
    named = owner is not None and schema.get("title") == owner.__name__
    return {key: value for key, value in schema.items() if not (named and key == "title")}
