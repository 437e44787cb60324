"""A prompt as the Messages API reads it, and the API's answer as a reply. Pure, and without the SDK.

Owns the wire format: https://docs.claude.com/en/api/messages. Knows nothing of HTTP, keys or errors of the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, cast

from pydantic import BaseModel, JsonValue, ValidationError

from agent.messages import (
    AssistantMessage,
    Opaque,
    ResultsMessage,
    Text,
    ToolResult,
    ToolUse,
    Transcript,
    UserMessage,
    check_pairing,
)
from agent.model import ModelError, ModelFailure, Prompt, Reply, StopReason, ToolSpec, Usage

Block = dict[str, JsonValue]

NOTHING_SAID = "(no text)"
NOTHING_RETURNED = "(no output)"
CACHED: Block = {"type": "ephemeral"}
_CACHEABLE = frozenset({"text", "tool_use", "tool_result"})
"""A thinking block takes no cache mark: https://docs.claude.com/en/docs/build-with-claude/prompt-caching"""

STOP_REASONS: Mapping[str, StopReason] = {
    **{str(reason): reason for reason in StopReason},
    "stop_sequence": StopReason.END_TURN,
}


def write_request(prompt: Prompt, *, model: str, max_tokens: int) -> dict[str, Any]:
    """The body of a request. Refuses, as a ModelError, a transcript that the API would refuse for its pairing."""
    try:
        check_pairing(prompt.messages)
    except ValueError as error:
        raise ModelError(ModelFailure.REFUSED_REQUEST, str(error)) from error
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": max_tokens,
        "messages": write_messages(prompt.messages),
    }
    if prompt.system.strip():
        body["system"] = _ending_cache([{"type": "text", "text": prompt.system}])
    if prompt.tools:
        body["tools"] = write_tools(prompt.tools)
    return body


def write_messages(transcript: Transcript) -> list[dict[str, Any]]:
    """Alternating turns: what one side says in several messages is one turn. The last block ends the cache."""
    turns: list[dict[str, Any]] = []
    said = ((role, blocks) for role, blocks in map(_turn, transcript) if blocks or role == "user")
    for role, several in groupby(said, key=lambda turn: turn[0]):
        content = [block for _, blocks in several for block in blocks]
        turns.append({"role": role, "content": content or [{"type": "text", "text": NOTHING_SAID}]})
    if turns and turns[-1]["content"][-1]["type"] in _CACHEABLE:
        turns[-1]["content"] = _ending_cache(turns[-1]["content"])
    return turns


def write_tools(tools: Iterable[ToolSpec]) -> list[Block]:
    """The tools; the last one ends the cache."""
    return _ending_cache([_tool(tool) for tool in tools])


def read_reply(body: bytes | str) -> Reply:
    """The API's answer as a reply. Raises ModelError for one that is none, or stopped for a reason we do not know."""
    try:
        answer = _Answer.model_validate_json(body)
    except ValidationError as error:
        raise ModelError(
            ModelFailure.UNREACHABLE, "the answer is not a message of the Messages API"
        ) from error
    message = AssistantMessage(tuple(_read_blocks(answer.content)))
    return Reply(message, _stop(answer.stop_reason, message), answer.usage.total())


# --- writing ----------------------------------------------------------------------------------------------------


def _turn(message: UserMessage | AssistantMessage | ResultsMessage) -> tuple[str, list[Block]]:
    match message:
        case UserMessage():
            return "user", list(_text(message.text))
        case ResultsMessage():
            return "user", [_result(result) for result in message.results]
        case AssistantMessage():
            return "assistant", [block for part in message.content for block in _said(part)]


def _text(text: str) -> Iterator[Block]:
    """A text block, unless it would be refused: "text content blocks must contain non-whitespace text"."""
    if text.strip():
        yield {"type": "text", "text": text}


def _said(part: Text | ToolUse | Opaque) -> Iterator[Block]:
    match part:
        case Text():
            yield from _text(part.text)
        case ToolUse():
            yield {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
        case Opaque():
            yield part.data


def _result(result: ToolResult) -> Block:
    block: Block = {
        "type": "tool_result",
        "tool_use_id": result.tool_use_id,
        "content": result.content if result.content.strip() else NOTHING_RETURNED,
    }
    return block if result.ok else {**block, "is_error": True}


def _tool(tool: ToolSpec) -> Block:
    described: Block = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": tool.schema}


def _ending_cache(blocks: list[Block]) -> list[Block]:
    """The blocks, the last one marked: everything up to it is read from the cache next time."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": CACHED}]


# --- reading ----------------------------------------------------------------------------------------------------


class _Usage(BaseModel):
    """What was read is split by how it met the cache."""

    input_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int = 0

    def total(self) -> Usage:
        cached = (self.cache_creation_input_tokens or 0) + (self.cache_read_input_tokens or 0)
        return Usage(self.input_tokens + cached, self.output_tokens)


class _Answer(BaseModel):
    content: list[dict[str, JsonValue]]
    stop_reason: str
    usage: _Usage = _Usage()


def _read_blocks(content: list[Block]) -> Iterator[Text | ToolUse | Opaque]:
    """Text and calls are ours to read; every other block goes back to the API as it came."""
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                if text.strip():
                    yield Text(text)
            case {"type": "tool_use", "id": str(id_), "name": str(name), "input": dict(arguments)}:
                yield ToolUse(id_, name, cast(dict[str, JsonValue], arguments))
            case {"type": "text" | "tool_use"}:
                raise ModelError(
                    ModelFailure.UNREACHABLE, f"a {block['type']} block lacks what such a block has"
                )
            case _:
                yield Opaque(block)


def _stop(named: str, message: AssistantMessage) -> StopReason:
    stop = STOP_REASONS.get(named)
    if stop is None:
        raise ModelError(
            ModelFailure.REFUSED_REQUEST,
            f"the model stopped for {named!r}, which this version of Signoff does not know; nothing was run",
        )
    if stop is StopReason.TOOL_USE and not message.tool_uses:
        raise ModelError(ModelFailure.UNREACHABLE, "the model stopped to call tools and named none")
    return stop
