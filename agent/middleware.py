"""The chain around tools: before a call it may allow, change, deny or ask; after it, change the result.

Owns the hooks' types and how a chain runs. Before: in order, the whole chain, before anyone is asked; the first deny
or exception denies; an ask is remembered while later links may still deny or change. After: in reverse order.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agent.canonical import NotFaithful, copy_faithfully


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the middleware sees it. `arguments` is a copy: changing it changes nothing."""

    tool: str
    arguments: dict[str, JsonValue]
    call_id: str
    run_id: str
    iteration: int


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on; with `value`, with these arguments instead, and `why` says what changed them."""

    value: dict[str, JsonValue] | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if self.value is not None and not self.why.strip():
            raise ValueError("allow(value) needs `why`: say why the arguments were changed")


@dataclass(frozen=True, slots=True)
class DenyCall:
    """Do not run it. The model reads the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class AskPerson:
    """A person must agree first. The question and its detail stand on the card."""

    question: str
    detail: str = ""


BeforeVerdict = Allow | DenyCall | AskPerson
BeforeTool = Callable[[ToolCall], BeforeVerdict | Awaitable[BeforeVerdict]]
AfterTool = Callable[[ToolCall, object], object]
"""Gets the tool's result and returns the one to use, or an awaitable of it."""


@dataclass(frozen=True, slots=True)
class Middleware:
    """A named link of the chain. It has at least one hook."""

    name: str
    before_tool: BeforeTool | None = None
    after_tool: AfterTool | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("middleware needs a name: refusals and cards name who asked")
        if self.before_tool is None and self.after_tool is None:
            raise ValueError(f"middleware {self.name!r} has no hook: give it before_tool or after_tool")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which link asked, and what."""

    middleware: str
    question: str
    detail: str


@dataclass(frozen=True, slots=True)
class Passed:
    """The chain let the call through, with these arguments; somebody may want a person to be asked."""

    arguments: dict[str, JsonValue]
    asked: Asked | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The chain denied the call. `detail` is for operators when a link raised."""

    middleware: str
    reason: str
    detail: str = ""


async def before(chain: Sequence[Middleware], call: ToolCall) -> Passed | Stopped:
    """Run the whole before-tool chain."""
    passed = Passed(call.arguments)
    for link in chain:
        if link.before_tool is None:
            continue
        outcome = await _consult(link, link.before_tool, replace(call, arguments=passed.arguments))
        match outcome:
            case Stopped():
                return outcome
            case Allow(value=None):
                pass
            case Allow(value=value, why=why):
                passed = replace(passed, arguments=value, changes=(*passed.changes, f"{link.name}: {why}"))
            case AskPerson(question=question, detail=detail):
                passed = replace(passed, asked=passed.asked or Asked(link.name, question, detail))
    return passed


async def after(chain: Sequence[Middleware], call: ToolCall, result: object) -> object:
    """Pass a result through the after-tool hooks, last link first. What a hook raises goes through."""
    for link in reversed(chain):
        if link.after_tool is None:
            continue
        result = link.after_tool(call, result)
        if inspect.isawaitable(result):
            result = await result
    return result


async def _consult(link: Middleware, hook: BeforeTool, call: ToolCall) -> Stopped | Allow | AskPerson:
    try:
        verdict = hook(replace(call, arguments=_copy(call.arguments)))
        if inspect.isawaitable(verdict):
            verdict = await verdict
        if isinstance(verdict, Allow) and verdict.value is not None:
            verdict = Allow(_copy(verdict.value), verdict.why)
    except Exception as error:
        return Stopped(
            link.name, f"denied: middleware {link.name!r} failed", f"{type(error).__name__}: {error}"
        )
    match verdict:
        case DenyCall(reason=reason):
            return Stopped(link.name, reason or f"denied by {link.name}")
        case Allow() | AskPerson():
            return verdict
        case _:
            found = type(verdict).__name__
            return Stopped(
                link.name, f"denied: middleware {link.name!r} failed", f"expected a verdict, got {found}"
            )


def _copy(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    copied = copy_faithfully(arguments)
    if not isinstance(copied, dict):
        raise NotFaithful("arguments must be an object")
    return copied
