"""A tool: a function that a model may call, as its author declares it.

Owns the decorator, the declaration and its checks. Whether a call may run is the gate's business; time-outs are the
caller's.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from pydantic import JsonValue

from agent.action import schema_hash
from agent.checkin import Component
from agent.component import read_component
from agent.demand import Predicate, check_demand
from agent.docstring import read_docstring
from agent.invoke import invoke
from agent.model import ToolSpec
from agent.parameters import Parameters, read_parameters
from agent.redaction import check_paths
from agent.sentence import Sentence, read_sentence
from agent.tool_error import ToolDefinitionError

StateVersion = Callable[[dict[str, JsonValue]], object]
"""Gets the arguments and returns the version of the part of the world that they are about, or an awaitable of it."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Which call this is. A parameter of this type is filled in by us, and hidden from the model.

    `idempotency_key` is the same for every attempt at one call: pass it on to whoever is to do it only once.
    """

    run_id: str
    call_id: str
    attempt_id: str
    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A function that a model may call. Made by `tool`."""

    name: str
    description: str
    function: Callable[..., object]
    parameters: Parameters
    schema_hash: str
    sentence: Sentence
    check_in: Literal["always"] | Predicate | None = None
    check_in_component: Component | None = None
    idempotent: bool = False
    timeout: float = 60.0
    redact: tuple[str, ...] = ()
    redact_result: tuple[str, ...] = ()
    state_version: StateVersion | None = None

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The JSON Schema of the arguments."""
        return self.parameters.schema

    def spec(self) -> ToolSpec:
        """The tool as the model sees it."""
        return ToolSpec(self.name, self.description, self.schema)

    def validate(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments, normalized and with the defaults. Normalizing them again changes nothing.

        Strict: nothing is converted. Raises InvalidArguments, which names where and what is expected.
        """
        return self.parameters.validate(arguments)

    def question(self, arguments: Mapping[str, JsonValue]) -> str:
        """What happens on a yes, as one sentence."""
        return self.sentence.about(arguments)

    async def call(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> object:
        """Call the function with normalized arguments; in a thread of its own, unless it is asynchronous."""
        values = self.parameters.python_values(arguments)
        if self.parameters.context is not None:
            values[self.parameters.context] = context
        return await invoke(self.function, values)


@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *,
    ask: str | None = None,
    check_in: Literal["always"] | Predicate | None = None,
    check_in_component: Component | Mapping[str, object] | None = None,
    idempotent: bool = False,
    timeout: float = 60.0,
    redact: Sequence[str] = (),
    redact_result: Sequence[str] = (),
    state_version: StateVersion | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    ask: str | None = None,
    check_in: Literal["always"] | Predicate | None = None,
    check_in_component: Component | Mapping[str, object] | None = None,
    idempotent: bool = False,
    timeout: float = 60.0,
    redact: Sequence[str] = (),
    redact_result: Sequence[str] = (),
    state_version: StateVersion | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a function a tool; as `@tool` or with options.

        @tool(ask="Refund {amount} {currency} on order {order_id}?", check_in="always")
        def issue_refund(order_id: str, amount: Annotated[int, Field(ge=1, le=5000)], currency: Currency) -> str:
            \"\"\"Refund a customer's order.\"\"\"

    The arguments' schema comes from the types, their descriptions from the docstring or from `Annotated[..., Field]`.

    `ask` is the question that people read. `check_in` says whether a person is asked before it runs: `"always"`, or a
    predicate of the arguments and a CheckInContext, of which only exactly False lets a call pass.
    `check_in_component` names a registered screen of yours that should collect the decision. `idempotent` says that
    running it again with the same idempotency key is harmless. `timeout` is in seconds. `redact` and `redact_result`
    list what nobody may see, of the arguments and of the result, as paths (`payment.token`). `state_version` tells
    the version of what the arguments are about. `name` and `description` default to the function's.

    Raises ToolDefinitionError.
    """

    def decorate(function: Callable[..., object]) -> Tool:
        try:
            return _build(
                function,
                ask=ask,
                check_in=check_in,
                component=read_component(check_in_component, gated=check_in is not None),
                idempotent=idempotent,
                timeout=timeout,
                redact=redact,
                redact_result=redact_result,
                state_version=state_version,
                name=name,
                description=description,
            )
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"tool {_called(function, name)!r}: {error}") from error

    return decorate if function is None else decorate(function)


# --- building -----------------------------------------------------------------------------------------------


def _build(
    function: Callable[..., object],
    *,
    ask: str | None,
    check_in: Literal["always"] | Predicate | None,
    component: Component | None,
    idempotent: bool,
    timeout: float,
    redact: Sequence[str],
    redact_result: Sequence[str],
    state_version: StateVersion | None,
    name: str | None,
    description: str | None,
) -> Tool:
    _check_function(function)
    doc = read_docstring(function.__doc__)
    named, described = name or function.__name__, (description or doc.description).strip()
    _check_words(named, described)
    _check_options(idempotent=idempotent, timeout=timeout, state_version=state_version)
    check_demand(check_in)
    parameters = read_parameters(function, doc, name=named, context=ToolContext)
    hidden = check_paths("redact", redact, parameters.schema)
    return Tool(
        name=named,
        description=described,
        function=function,
        parameters=parameters,
        schema_hash=schema_hash(parameters.schema),
        sentence=read_sentence(ask or f"Run {named}?", schema=parameters.schema, redact=hidden),
        check_in=check_in,
        check_in_component=component,
        idempotent=idempotent,
        timeout=float(timeout),
        redact=hidden,
        redact_result=check_paths("redact_result", redact_result, None),
        state_version=state_version,
    )


def _check_function(function: Callable[..., object]) -> None:
    if not inspect.isroutine(function):
        raise ToolDefinitionError(f"a function is expected, not a {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError("a generator has many results, a tool has one: return it")


def _check_words(name: str, description: str) -> None:
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError("a name of 1 to 64 letters, digits, _ and - is expected")
    if not description:
        raise ToolDefinitionError(
            "a description is required, as docstring or description=: people and models read it"
        )


def _check_options(*, idempotent: object, timeout: object, state_version: object) -> None:
    if not isinstance(idempotent, bool):
        raise ToolDefinitionError("idempotent: True or False expected")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ToolDefinitionError("timeout: a number of seconds expected")
    if not (math.isfinite(timeout) and timeout > 0):
        raise ToolDefinitionError("timeout: more than 0 seconds expected, and an end")
    if state_version is not None and not callable(state_version):
        raise ToolDefinitionError("state_version: a function of the arguments expected")


def _called(function: object, name: str | None) -> str:
    return name or str(getattr(function, "__name__", type(function).__name__))
