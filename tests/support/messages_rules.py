"""What the Messages API refuses, in its own words. Pure: a request's headers and body in, a refusal out.

The rules and texts are those that the real API was seen to answer with; the table of empty texts is measured:
`assistant content: []` and a blank tool result pass, a blank user message and an empty text block do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

VERSIONS = {"2023-06-01", "2026-10-21"}
FIELDS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "metadata",
    "stop_sequences", "stream", "thinking", "service_tier", "container", "cache_control", "output_config",
}  # fmt: skip
BLOCKS = {
    "user": {"text", "image", "document", "search_result", "tool_result"},
    "assistant": {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
    },
}
MAX_CACHE_MARKS = 4

Block = dict[str, Any]


class Refusal(Exception):
    def __init__(self, status: int, type: str, message: str) -> None:
        super().__init__(message)
        self.status, self.type, self.message = status, type, message


def invalid(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def check_headers(headers: Mapping[str, str], key: str) -> None:
    """The SDK sends the key as a bearer token since 2.0; `x-api-key` is as good."""
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not given:
        raise Refusal(401, "authentication_error", "x-api-key header is required")
    if given != key:
        raise Refusal(401, "authentication_error", "invalid x-api-key")
    version = headers.get("anthropic-version")
    if not version:
        raise invalid("anthropic-version: header is required")
    if version not in VERSIONS:
        raise invalid(f'anthropic-version: "{version}" is not a valid version')


def check_body(body: Any) -> None:
    """Raise the first Refusal that the real API would answer with."""
    if not isinstance(body, dict):
        raise invalid("Input should be a valid dictionary")
    for problem in _problems(body):
        raise problem


def _problems(body: Block) -> Iterator[Refusal]:
    for name in ("max_tokens", "messages", "model"):
        if name not in body:
            yield invalid(f"{name}: Field required")
    for name in body.keys() - FIELDS:
        yield invalid(f"{name}: Extra inputs are not permitted")
    if type(body["max_tokens"]) is not int or body["max_tokens"] < 0:
        yield invalid("max_tokens: Input should be a valid integer greater than or equal to 0")
    if not str(body["model"]).startswith("claude-"):
        yield Refusal(404, "not_found_error", f"model: {body['model']}")
    yield from _system_problems(body.get("system", ""))
    yield from _tool_problems(body.get("tools", []))
    yield from _message_problems(body["messages"])
    yield from _cache_problems(body)


# --- system and tools -------------------------------------------------------------------------------------------


def _system_problems(system: Any) -> Iterator[Refusal]:
    if isinstance(system, str):
        if system and not system.strip():
            yield invalid("system: text content blocks must contain non-whitespace text")
        return
    for block in system:
        if not block.get("text"):
            yield invalid("system: text content blocks must be non-empty")


def _tool_problems(tools: Any) -> Iterator[Refusal]:
    names = [tool.get("name") for tool in tools]
    if len(set(names)) != len(names):
        yield invalid("tools: Tool names must be unique.")
    for place, tool in enumerate(tools):
        yield from _one_tool_problems(f"tools.{place}.custom", tool)


def _one_tool_problems(at: str, tool: Block) -> Iterator[Refusal]:
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(tool.get("name", ""))):
        yield invalid(f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        yield invalid(f"{at}.input_schema: Field required")
        return
    if "type" not in schema:
        yield invalid(f"{at}.input_schema.type: Field required")
    elif schema["type"] != "object":
        yield invalid(f"{at}.input_schema.type: Input should be 'object'")
    if schema.keys() & {"oneOf", "allOf", "anyOf"}:
        yield invalid(
            f"{at}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        yield invalid(f"{at}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12")


# --- messages ---------------------------------------------------------------------------------------------------


def _message_problems(messages: Any) -> Iterator[Refusal]:
    if not isinstance(messages, list):
        yield invalid("messages: Input should be a valid list")
    if not messages:
        yield invalid("messages: at least one message is required")
    for place, message in enumerate(messages):
        if message.get("role") not in BLOCKS:
            yield invalid(
                f'messages: Unexpected role "{message.get("role")}". Allowed roles are "user", "assistant"'
            )
        yield from _content_problems(place, message["role"], message.get("content"))
    if messages[0]["role"] != "user":
        yield invalid('messages: first message must use the "user" role')
    yield from _pairing_problems(messages)
    yield from _ending_problems(messages[-1])


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _content_problems(place: int, role: str, content: Any) -> Iterator[Refusal]:
    if not isinstance(content, str | list):
        yield invalid(f"messages.{place}.content: Field required")
    blocks = _blocks(content)
    if role == "user" and not blocks:
        yield invalid(f"messages.{place}: user messages must have non-empty content")
    for number, block in enumerate(blocks):
        if block.get("type") not in BLOCKS[role]:
            yield invalid(
                f"messages.{place}.content.{number}: Input tag '{block.get('type')}' found using 'type' does not "
                "match any of the expected tags"
            )
        yield from _block_problems(f"messages.{place}.content.{number}.{block['type']}", block)
    if blocks and all(block["type"] == "text" and not block["text"].strip() for block in blocks):
        yield invalid("messages: text content blocks must contain non-whitespace text")


def _block_problems(at: str, block: Block) -> Iterator[Refusal]:
    match block["type"]:
        case "text" if not block.get("text"):
            yield invalid("messages: text content blocks must be non-empty")
        case "tool_use":
            if not re.fullmatch(r"[a-zA-Z0-9_-]+", str(block.get("id", ""))):
                yield invalid(f"{at}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            if not isinstance(block.get("input"), dict):
                yield invalid(f"{at}.input: Input should be a valid dictionary")
        case "tool_result":
            if not isinstance(block.get("tool_use_id"), str):
                yield invalid(f"{at}.tool_use_id: Field required")
            if not isinstance(block.get("is_error", False), bool):
                yield invalid(f"{at}.is_error: Input should be a valid boolean")
        case "thinking":
            if not block.get("signature"):
                yield invalid(f"{at}.signature: Field required")
            if "cache_control" in block:
                yield invalid(f"{at}.cache_control: Extra inputs are not permitted")
        case _:
            return


def _pairing_problems(messages: list[Block]) -> Iterator[Refusal]:
    """On turns: the API reads consecutive messages of one role as one."""
    turns = [
        (role, [block for message in several for block in _blocks(message["content"])])
        for role, several in groupby(messages, key=lambda message: message["role"])
    ]
    seen: set[str] = set()
    for place, (role, blocks) in enumerate(turns):
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if seen & set(called) or len(set(called)) != len(called):
            yield invalid(f"messages.{place}: `tool_use` ids must be unique")
        seen |= set(called)
        following = turns[place + 1][1] if place + 1 < len(turns) else []
        unanswered = [id_ for id_ in called if id_ not in _leading_results(following)]
        if unanswered:
            yield invalid(
                f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(unanswered)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        before = turns[place - 1][1] if place else []
        yield from _result_problems(place, blocks if role == "user" else [], before)


def _leading_results(blocks: list[Block]) -> list[str]:
    """Results count only before anything else is said."""
    found: list[str] = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        found.append(block["tool_use_id"])
    return found


def _result_problems(place: int, blocks: list[Block], before: list[Block]) -> Iterator[Refusal]:
    called = {block["id"] for block in before if block["type"] == "tool_use"}
    answered: set[str] = set()
    for number, block in enumerate(blocks):
        if block["type"] != "tool_result":
            continue
        if block["tool_use_id"] not in called:
            yield invalid(
                f"messages.{place}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message."
            )
        if block["tool_use_id"] in answered:
            yield invalid(f"messages.{place}.content.{number}: each tool_use must have a single result")
        answered.add(block["tool_use_id"])


def _ending_problems(last: Block) -> Iterator[Refusal]:
    """https://platform.claude.com/docs/en/api/errors#prefill-not-supported; a paused turn ends in a server's block."""
    if (
        last["role"] == "assistant"
        and _blocks(last["content"])[-1:]
        and _blocks(last["content"])[-1]["type"] == "text"
    ):
        yield invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _cache_problems(body: Block) -> Iterator[Refusal]:
    places: list[Any] = [*body.get("tools", [])]
    places += body["system"] if isinstance(body.get("system"), list) else []
    places += [block for message in body["messages"] for block in _blocks(message["content"])]
    marks = sum("cache_control" in place for place in places)
    if marks > MAX_CACHE_MARKS:
        yield invalid(
            f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {marks}."
        )
