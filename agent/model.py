"""The port to a language model: what we send, what comes back, how it fails.

Owns the `Model` protocol and its data. Knows no vendor: `claude.py` speaks to Anthropic, `scripted.py` needs no key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from agent.messages import AssistantMessage, Transcript


class StopReason(StrEnum):
    """Why the model stopped. The names are Anthropic's, where it has one."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    CONTEXT_FULL = "model_context_window_exceeded"


class ModelFailure(StrEnum):
    """How a model call failed, as far as it matters to what happens next."""

    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    CONTEXT_FULL = "context_full"
    REFUSED_REQUEST = "refused_request"
    """The request itself was wrong: retrying cannot help."""
    UNAUTHORIZED = "unauthorized"

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed later."""
        return self in _PASSING


_PASSING = frozenset(
    {ModelFailure.OVERLOADED, ModelFailure.RATE_LIMITED, ModelFailure.UNREACHABLE, ModelFailure.TIMED_OUT}
)


class ModelError(Exception):
    """A model call that brought no reply. `retry_after` is in seconds, when the vendor named one."""

    def __init__(self, kind: ModelFailure, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{kind}: {detail}" if detail else str(kind))
        self.kind = kind
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `schema` is the JSON Schema of the arguments."""

    name: str
    description: str
    schema: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything one call of the model is about."""

    system: str
    tools: tuple[ToolSpec, ...]
    messages: Transcript


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply. A reply that stopped for `TOOL_USE` proposes at least one call."""

    message: AssistantMessage
    stop: StopReason
    usage: Usage = field(default_factory=Usage)


class Model(Protocol):
    """One language model. Implementations raise `ModelError` and nothing else for a call that failed."""

    @property
    def name(self) -> str: ...

    async def reply(self, prompt: Prompt) -> Reply: ...
