"""Claude, by Anthropic's SDK: the one file that imports it.

Owns the connection: retries, time-outs, and what each of the SDK's errors means to a run. `claude_wire.py` owns what is
sent and read.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Any, cast

from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIRequest,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    AsyncAPIResponse,
    AsyncCallNext,
    CredentialsError,
)
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from agent.claude_wire import read_reply, write_request
from agent.model import ModelError, ModelFailure, Prompt, Reply

CURRENT = "claude-sonnet-5-5"
LONGEST_WAIT = 10.0
"""Seconds that the SDK may wait before a retry. What takes longer is the run's own to wait for, visibly."""
DETAIL_LIMIT = 500

F = ModelFailure
_BY_STATUS = {
    401: F.UNAUTHORIZED,
    402: F.UNAUTHORIZED,
    403: F.UNAUTHORIZED,
    408: F.TIMED_OUT,
    409: F.OVERLOADED,
    413: F.CONTEXT_FULL,
    429: F.RATE_LIMITED,
    503: F.OVERLOADED,
    504: F.TIMED_OUT,
    529: F.OVERLOADED,
}
"""https://docs.claude.com/en/api/errors. Any other 4xx is our mistake, any other 5xx theirs."""

_BY_TYPE = {
    "overloaded_error": F.OVERLOADED,
    "rate_limit_error": F.RATE_LIMITED,
    "authentication_error": F.UNAUTHORIZED,
    "permission_error": F.UNAUTHORIZED,
    "billing_error": F.UNAUTHORIZED,
    "timeout_error": F.TIMED_OUT,
}

# The API has no code for it: a request beyond the context window is an `invalid_request_error` in these words.
_TOO_LONG = ("prompt is too long", "exceed context limit", "input is too long")


class ClaudeNotConfigured(ValueError):
    """There is no key to call Claude with."""


class Claude:
    """Anthropic's Claude.

    A client of your own (another region, a proxy, Bedrock) replaces the one that reads ANTHROPIC_API_KEY; `timeout`
    (seconds to wait for an answer) and `retries` apply to either.

    Raises ClaudeNotConfigured when there is neither a client nor a key.
    """

    def __init__(
        self,
        model: str = CURRENT,
        *,
        max_tokens: int = 8_192,
        client: AsyncAnthropic | None = None,
        timeout: float = 300.0,
        retries: int = 2,
    ) -> None:
        self.model = model
        self.max_tokens = max_tokens
        client = client or _from_environment()
        self._client = client.with_options(
            timeout=timeout, max_retries=retries, middleware=[*client.middleware, _wait_no_longer]
        )

    @property
    def name(self) -> str:
        return self.model

    async def reply(self, prompt: Prompt) -> Reply:
        """Send the conversation and read what comes back. Raises ModelError."""
        body = write_request(prompt, model=self.model, max_tokens=self.max_tokens)
        return read_reply(await self._send(body))

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, body: dict[str, Any]) -> bytes:
        request = cast(MessageCreateParamsNonStreaming, body)
        try:
            answer = await self._client.messages.with_raw_response.create(**request)
            return await answer.read()
        except AnthropicError as error:
            raise _failure(error) from error


def _from_environment() -> AsyncAnthropic:
    try:
        client = AsyncAnthropic()
    except CredentialsError as error:
        raise ClaudeNotConfigured(f"the configured Anthropic credentials cannot be used: {error}") from error
    if not (client.api_key or client.auth_token or client.credentials):
        raise ClaudeNotConfigured(
            "set ANTHROPIC_API_KEY, or pass a client: Claude(client=AsyncAnthropic(...))"
        )
    return client


async def _wait_no_longer(request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
    """Runs once an attempt. The SDK waits as long as `retry-after` says, be it an hour: then the run should know."""
    response = await call_next(request)
    wait = _retry_after(response.headers)
    if response.status_code >= 400 and wait is not None and wait > LONGEST_WAIT:
        await response.close()
        kind = _by_status(response.status_code)
        raise ModelError(kind, f"HTTP {response.status_code}", retry_after=wait)
    return response


def _failure(error: AnthropicError) -> ModelError:
    """What the SDK's error means to a run."""
    match error:
        case APITimeoutError():
            return ModelError(F.TIMED_OUT, "no answer in time")
        case APIConnectionError():
            return ModelError(F.UNREACHABLE, f"no connection ({type(error.__cause__).__name__})")
        case APIStatusError():
            detail = (
                f"HTTP {error.status_code} {error.type}: {error.api_message} (request {error.request_id})"
            )
            return ModelError(
                _kind(error), detail[:DETAIL_LIMIT], retry_after=_retry_after(error.response.headers)
            )
        case APIResponseValidationError():
            return ModelError(F.UNREACHABLE, "the answer is not a message of the Messages API")
        case CredentialsError():
            return ModelError(F.UNAUTHORIZED, "the configured credentials cannot be read")
        case _:
            return ModelError(F.REFUSED_REQUEST, type(error).__name__)


def _kind(error: APIStatusError) -> ModelFailure:
    said = (error.api_message or "").lower()
    if error.status_code == 400 and any(words in said for words in _TOO_LONG):
        return F.CONTEXT_FULL
    return _BY_TYPE.get(error.type or "") or _by_status(error.status_code)


def _by_status(status: int) -> ModelFailure:
    return _BY_STATUS.get(status) or (F.UNREACHABLE if status >= 500 else F.REFUSED_REQUEST)


def _retry_after(headers: Any) -> float | None:
    """Seconds to wait: the API names them; what stands between may name milliseconds, or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return _seconds_until(headers.get("retry-after", ""))


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        return max(0.0, moment.timestamp() - time.time())
    except ValueError:
        return None
