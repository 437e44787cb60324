"""Tools: the box that an agent keeps them in, the built-in question, and every public name around them.

Owns the box and `ask_user`. One tool is in `tool.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.demand import CheckInContext, Predicate, demand
from agent.model import ToolSpec
from agent.result import UnrenderableResult, plain_result, render_result
from agent.schema_check import check_schema
from agent.tool import StateVersion, Tool, ToolContext, tool
from agent.tool_error import InvalidArguments, ToolDefinitionError

__all__ = [
    "ASK_USER",
    "CheckInContext",
    "InvalidArguments",
    "Predicate",
    "StateVersion",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "Toolbox",
    "UnrenderableResult",
    "check_schema",
    "demand",
    "is_ask_user",
    "plain_result",
    "render_result",
    "tool",
]


class Toolbox:
    """An agent's tools, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for made in tools:
            _check_made(made)
            if made.name in self._tools:
                raise ToolDefinitionError(f"two tools are named {made.name!r}")
            self._tools[made.name] = made

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        return tuple(made.spec() for made in self._tools.values())


ASK_USER = ToolSpec(
    name="ask_user",
    description=(
        "Ask a person a question, and wait for the answer. For when you need to know something that only a person "
        "can tell. It is not a way to get consent: a tool that needs consent asks for it by itself."
    ),
    schema={
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "description": "The question, as one sentence."},
            "options": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "description": "Answers to choose from. The person may always answer in other words.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
)
"""The built-in question. It is not gated: asking a person whether a person may be asked would never end."""


def is_ask_user(toolbox: Toolbox, name: str) -> bool:
    """Whether a call is the built-in question. An author's own tool of that name takes its place, and is gated."""
    return name == ASK_USER.name and toolbox.get(name) is None


def _check_made(made: object) -> None:
    if not isinstance(made, Tool):
        raise ToolDefinitionError(
            f"{getattr(made, '__name__', made)!r} is not a tool: decorate it with @tool"
        )
