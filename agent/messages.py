"""The transcript's vocabulary: what people, models and tools said, as data.

Owns the message and block types and their JSON form. Knows nothing of models' wire formats, of runs or of
storage. Messages are immutable; a transcript only ever grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter


class ResultStatus(StrEnum):
    """How a tool call ended. Recorded with the result; never guessed from its text."""

    OK = "ok"
    ERROR = "error"
    """The tool ran and raised, or its arguments were refused before it ran."""
    DENIED = "denied"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    """It cannot be known whether the tool ran."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, by whoever the message is from."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that the model proposes. `id` is the model's and pairs the call with its result."""

    id: str
    name: str
    arguments: dict[str, JsonValue]
    type: Literal["tool_use"] = "tool_use"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of one proposed call: the text that the model reads, and the status that we recorded."""

    tool_use_id: str
    tool: str
    content: str
    status: ResultStatus
    type: Literal["tool_result"] = "tool_result"

    @property
    def ok(self) -> bool:
        return self.status is ResultStatus.OK


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block of the model's that we pass back unread (thinking, server tools)."""

    data: dict[str, JsonValue]
    type: Literal["opaque"] = "opaque"


AssistantBlock = Annotated[Text | ToolUse | Opaque, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A person's words. `author` names the person, where one is known."""

    text: str
    author: str = ""
    type: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply of the model."""

    content: tuple[AssistantBlock, ...]
    type: Literal["assistant"] = "assistant"

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.content if isinstance(block, Text)).strip()

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUse))


@dataclass(frozen=True, slots=True)
class ResultsMessage:
    """All results of one reply's calls, in the order in which the model proposed them."""

    results: tuple[ToolResult, ...]
    type: Literal["results"] = "results"


Message = Annotated[UserMessage | AssistantMessage | ResultsMessage, Field(discriminator="type")]
Transcript = Sequence[UserMessage | AssistantMessage | ResultsMessage]

_MESSAGE: TypeAdapter[UserMessage | AssistantMessage | ResultsMessage] = TypeAdapter(Message)


class UnpairedToolUse(ValueError):
    """A transcript in which a proposed call has no result, or a result has no call."""


def dump_message(message: UserMessage | AssistantMessage | ResultsMessage) -> bytes:
    """One message as JSON; `load_message` reads it back."""
    return _MESSAGE.dump_json(message)


def load_message(data: bytes | str) -> UserMessage | AssistantMessage | ResultsMessage:
    return _MESSAGE.validate_json(data)


def check_pairing(transcript: Transcript) -> None:
    """Refuse a transcript that a model would refuse: each call answered in the very next message, in order.

    Raises UnpairedToolUse naming the message's position (from 0) and the ids that do not match.
    """
    for position, message in enumerate(transcript):
        if isinstance(message, ResultsMessage):
            _check_results(position, message, transcript[position - 1] if position else None)
        elif isinstance(message, AssistantMessage) and message.tool_uses:
            _check_answered(position, message, transcript)


def _check_results(position: int, message: ResultsMessage, before: object) -> None:
    proposed = [use.id for use in before.tool_uses] if isinstance(before, AssistantMessage) else []
    answered = [result.tool_use_id for result in message.results]
    if proposed != answered:
        raise UnpairedToolUse(
            f"message {position}: expected results for {proposed}, found results for {answered}"
        )


def _check_answered(position: int, message: AssistantMessage, transcript: Transcript) -> None:
    following = transcript[position + 1] if position + 1 < len(transcript) else None
    if not isinstance(following, ResultsMessage):
        ids = [use.id for use in message.tool_uses]
        raise UnpairedToolUse(f"message {position}: the calls {ids} are not answered by the next message")
