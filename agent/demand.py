"""Whether a tool's own check-in demands a person, for one call.

Owns the predicate's type and its reading: only exactly False lets a call pass, everything else asks.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from agent.canonical import copy_faithfully
from agent.messages import Transcript
from agent.tool_error import ToolDefinitionError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckInContext:
    """Where in its run a call stands, for a predicate that wants to know."""

    iteration: int
    tool_call_id: str
    history: Transcript


Predicate = Callable[[dict[str, JsonValue], CheckInContext], bool | Awaitable[bool]]
"""Says of a call's arguments whether a person must agree. It gets a copy of them."""


class Demanding(Protocol):
    """What has a check-in: a tool."""

    @property
    def name(self) -> str: ...
    @property
    def check_in(self) -> Literal["always"] | Predicate | None: ...


async def demand(tool: Demanding, arguments: Mapping[str, JsonValue], context: CheckInContext) -> str | None:
    """Why a person must be asked; None when the call may pass without one."""
    if tool.check_in is None:
        return None
    if not callable(tool.check_in):
        return "check-in: always"
    try:
        verdict = await _verdict(tool.check_in, arguments, context)
    except Exception as error:
        # Its text may hold arguments: it stays out of the log.
        logger.warning("check-in rule failed", extra={"tool": tool.name, "error": type(error).__name__})
        return "its check-in rule failed, so it asks"
    return None if verdict is False else _reason(tool.check_in)


def check_demand(check_in: object) -> None:
    """Refuse a check-in that is none. Raises ToolDefinitionError."""
    if check_in is None or check_in == "always":
        return
    if not callable(check_in):
        raise ToolDefinitionError('check_in: None, "always" or a predicate of (arguments, context) expected')
    try:
        inspect.signature(check_in).bind({}, None)
    except TypeError as error:
        raise ToolDefinitionError("check_in: a predicate of (arguments, context) expected") from error
    except ValueError:
        return  # Written in C, without a signature to look at.


async def _verdict(rule: Predicate, arguments: Mapping[str, JsonValue], context: CheckInContext) -> object:
    copied = copy_faithfully(dict(arguments))
    verdict: object = rule(copied, context)  # pyright: ignore[reportArgumentType]  (a copy of a dict is a dict)
    if inspect.isawaitable(verdict):
        verdict = await verdict
    if inspect.iscoroutine(verdict):
        # A coroutine's result that is one again: it asks, and is not left behind to warn.
        verdict.close()
    return verdict


def _reason(rule: Predicate) -> str:
    name = str(getattr(rule, "__name__", type(rule).__name__))
    return "check-in rule" if name == "<lambda>" else f"check-in rule `{name}`"
