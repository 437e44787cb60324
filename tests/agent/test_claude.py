"""Claude over real HTTP, against a server that refuses what the Messages API refuses."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from anthropic import AsyncAnthropic

from agent.claude import Claude, ClaudeNotConfigured
from agent.decision import Approved, Declined
from agent.examples import refunds
from agent.messages import (
    AssistantMessage,
    Message,
    Opaque,
    ResultsMessage,
    ResultStatus,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from agent.model import ModelError, ModelFailure, Prompt, StopReason, ToolSpec, Usage
from agent.models import UnknownModel, resolve
from agent.runner import Finished, Paused
from tests.support.messages_api import (
    MessagesApi,
    broken,
    dropped,
    failure,
    message,
    never,
    overloaded,
    rate_limited,
    raw,
    tool_use,
)

REFUND = ToolSpec(
    "issue_refund", "Refund an order.", {"type": "object", "properties": {"amount": {"type": "integer"}}}
)
LOOKUP = ToolSpec("lookup_order", "", {"type": "object", "properties": {}})
GOOD: dict[str, Any] = {"model": "claude-x", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
THINKING: dict[str, Any] = {"type": "thinking", "thinking": "Is it verified?", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "A-1042"}}
TOO_LONG = "prompt is too long"
TOO_MUCH = "and `max_tokens` exceed context limit: 190000 + 20000 > 200000"
SOON = {"retry_after_ms": "1"}


def prompt(
    *messages: Message, system: str = "Be brief.", tools: tuple[ToolSpec, ...] = (LOOKUP, REFUND)
) -> Prompt:
    return Prompt(system, tools, messages or (UserMessage("Refund A-1042"),))


def called(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolUse(id_, "lookup_order", {}) for id_ in ids))


def results(*ids: str, status: ResultStatus = ResultStatus.OK, content: str = "found") -> ResultsMessage:
    return ResultsMessage(tuple(ToolResult(id_, "lookup_order", content, status) for id_ in ids))


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as server:
        yield server


Make = Callable[..., Claude]


@pytest.fixture
async def make(api: MessagesApi) -> AsyncIterator[Make]:
    """Makes models on the server; closes them afterwards."""
    made: list[Claude] = []

    def make_one(*, key: str = api.key, **options: Any) -> Claude:
        client = AsyncAnthropic(base_url=api.url, api_key=key)
        made.append(Claude(client=client, **{"timeout": 5.0, "retries": 0, **options}))
        return made[-1]

    yield make_one
    for model in made:
        await model.close()


async def failing(model: Claude, asked: Prompt | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.reply(asked or prompt())
    return caught.value


class TestWhatIsSent:
    async def test_names_the_model_and_the_limit(self, api: MessagesApi, make: Make):
        api.will(message("Hello."))
        await make(model="claude-opus-5-5", max_tokens=123).reply(prompt())
        assert (api.body["model"], api.body["max_tokens"]) == ("claude-opus-5-5", 123)

    async def test_marks_the_cache_at_the_ends_of_system_tools_and_messages(
        self, api: MessagesApi, make: Make
    ):
        api.will(message("Hello."))
        await make().reply(prompt())
        mark = {"cache_control": {"type": "ephemeral"}}
        assert api.body["system"] == [{"type": "text", "text": "Be brief.", **mark}]
        assert api.body["tools"] == [
            {"name": "lookup_order", "input_schema": LOOKUP.schema},
            {
                "name": "issue_refund",
                "description": "Refund an order.",
                "input_schema": REFUND.schema,
                **mark,
            },
        ]
        assert api.body["messages"] == [
            {"role": "user", "content": [{"type": "text", "text": "Refund A-1042", **mark}]}
        ]

    async def test_leaves_out_a_system_prompt_and_tools_that_are_not_there(
        self, api: MessagesApi, make: Make
    ):
        api.will(message("Hello."))
        await make().reply(prompt(system=" \n", tools=()))
        assert not api.body.keys() & {"system", "tools"}

    async def test_pairs_calls_and_results_and_marks_every_status_but_ok_as_an_error(
        self, api: MessagesApi, make: Make
    ):
        for status in ResultStatus:
            api.will(message("Noted."))
            await make().reply(prompt(UserMessage("go"), called("t1"), results("t1", status=status)))
            (block,) = api.body["messages"][-1]["content"]
            assert block["tool_use_id"] == "t1"
            assert block.get("is_error", False) is (status is not ResultStatus.OK)

    async def test_says_several_messages_of_one_side_in_one_turn(self, api: MessagesApi, make: Make):
        api.will(message("Noted."))
        await make().reply(
            prompt(UserMessage("one"), UserMessage("two"), called("t1"), results("t1"), UserMessage("three"))
        )
        turns = [
            (turn["role"], [block["type"] for block in turn["content"]]) for turn in api.body["messages"]
        ]
        assert turns == [
            ("user", ["text", "text"]),
            ("assistant", ["tool_use"]),
            ("user", ["tool_result", "text"]),
        ]

    async def test_never_sends_an_empty_text(self, api: MessagesApi, make: Make):
        api.will(message("Noted."))
        await make().reply(
            prompt(
                UserMessage(""),
                AssistantMessage((Text("  "), ToolUse("t1", "lookup_order", {}))),
                results("t1", content="\n"),
                AssistantMessage((Text(" "),)),
                UserMessage("so?"),
            )
        )
        assert [
            [block.get("text", block.get("content")) for block in turn["content"]]
            for turn in api.body["messages"]
        ] == [
            ["(no text)"],
            [None],
            ["(no output)", "so?"],
        ]

    async def test_sends_thinking_and_server_blocks_back_as_they_came(self, api: MessagesApi, make: Make):
        unknown = {**SEARCH, "extra": {"of": ["a", "later", 1.5, None]}}
        api.will(message(THINKING, "Let me see.", unknown, stop="pause_turn"), message("Done."))
        model = make()
        first = await model.reply(prompt())
        await model.reply(prompt(UserMessage("Refund A-1042"), first.message))
        assert api.body["messages"][1]["content"] == [
            THINKING,
            {"type": "text", "text": "Let me see."},
            unknown,
        ]

    @pytest.mark.parametrize(
        "messages",
        [
            (UserMessage("go"), called("t1")),
            (UserMessage("go"), called("t1"), UserMessage("wait")),
            (UserMessage("go"), called("t1", "t2"), results("t1")),
            (UserMessage("go"), results("t1")),
        ],
        ids=["no result", "interrupted", "one of two", "no call"],
    )
    async def test_does_not_send_calls_without_their_results(
        self, api: MessagesApi, make: Make, messages: tuple[Message, ...]
    ):
        error = await failing(make(), prompt(*messages))
        assert error.kind is ModelFailure.REFUSED_REQUEST
        assert api.received == []


class TestWhatIsRead:
    async def test_text_calls_and_usage(self, api: MessagesApi, make: Make):
        api.will(
            message(
                "I refund it.",
                tool_use("toolu_1", "issue_refund", amount=5000),
                tool_use("toolu_2", "lookup_order"),
                cache_creation_input_tokens=3,
                cache_read_input_tokens=100,
            )
        )
        reply = await make().reply(prompt())
        assert reply.stop is StopReason.TOOL_USE
        assert reply.message.text == "I refund it."
        assert reply.message.tool_uses == (
            ToolUse("toolu_1", "issue_refund", {"amount": 5000}),
            ToolUse("toolu_2", "lookup_order", {}),
        )
        assert reply.usage == Usage(input_tokens=113, output_tokens=5)

    @pytest.mark.parametrize(
        ("named", "stop"),
        [
            ("end_turn", StopReason.END_TURN),
            ("stop_sequence", StopReason.END_TURN),
            ("max_tokens", StopReason.MAX_TOKENS),
            ("pause_turn", StopReason.PAUSE_TURN),
            ("refusal", StopReason.REFUSAL),
            ("model_context_window_exceeded", StopReason.CONTEXT_FULL),
        ],
    )
    async def test_every_stop_reason(self, api: MessagesApi, make: Make, named: str, stop: StopReason):
        api.will(message("So far.", stop=named))
        assert (await make().reply(prompt())).stop is stop

    async def test_a_reply_may_be_empty(self, api: MessagesApi, make: Make):
        api.will(message(stop="refusal"))
        assert (await make().reply(prompt())).message == AssistantMessage(())

    async def test_an_empty_text_is_left_out_and_other_blocks_are_kept(self, api: MessagesApi, make: Make):
        api.will(message("", THINKING, "Yes."))
        assert (await make().reply(prompt())).message.content == (Opaque(THINKING), Text("Yes."))

    async def test_a_stop_reason_of_tomorrow_is_an_error_that_says_so(self, api: MessagesApi, make: Make):
        api.will(message("Hm.", stop="bored"))
        error = await failing(make())
        assert not error.kind.passing
        assert "'bored'" in str(error)

    async def test_a_stop_for_calls_without_one_is_an_error(self, api: MessagesApi, make: Make):
        api.will(message("Hm.", stop="tool_use"))
        assert "named none" in str(await failing(make()))

    @pytest.mark.parametrize(
        "answer",
        [
            raw("<html>Bad gateway</html>"),
            raw("{", content_type="application/json"),
            raw('{"type": "message"}', content_type="application/json"),
            message({"type": "tool_use", "id": "t1", "name": "x"}),
        ],
        ids=["html", "broken", "incomplete", "half a call"],
    )
    async def test_what_is_no_message_is_a_failure_that_may_pass(
        self, api: MessagesApi, make: Make, answer: Any
    ):
        api.will(answer)
        assert (await failing(make())).kind is ModelFailure.UNREACHABLE


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (failure(400, "invalid_request_error", "messages: something"), ModelFailure.REFUSED_REQUEST),
            (failure(400, "invalid_request_error", f"{TOO_LONG}: 208310 tokens"), ModelFailure.CONTEXT_FULL),
            (failure(400, "invalid_request_error", f"input length {TOO_MUCH}"), ModelFailure.CONTEXT_FULL),
            (failure(401, "authentication_error", "invalid x-api-key"), ModelFailure.UNAUTHORIZED),
            (failure(402, "billing_error", "no credit"), ModelFailure.UNAUTHORIZED),
            (failure(403, "permission_error", "not yours"), ModelFailure.UNAUTHORIZED),
            (failure(404, "not_found_error", "model: claude-0"), ModelFailure.REFUSED_REQUEST),
            (failure(413, "request_too_large", "too large"), ModelFailure.CONTEXT_FULL),
            (rate_limited(), ModelFailure.RATE_LIMITED),
            (broken(), ModelFailure.UNREACHABLE),
            (raw("<html>", status=502), ModelFailure.UNREACHABLE),
            (raw("<html>", status=503), ModelFailure.OVERLOADED),
            (failure(504, "timeout_error", "too slow"), ModelFailure.TIMED_OUT),
            (overloaded(), ModelFailure.OVERLOADED),
            (failure(500, "overloaded_error", "Overloaded"), ModelFailure.OVERLOADED),
            (never, ModelFailure.TIMED_OUT),
            (dropped, ModelFailure.UNREACHABLE),
        ],
    )  # fmt: skip
    async def test_each_has_its_kind(self, api: MessagesApi, make: Make, answer: Any, kind: ModelFailure):
        api.will(answer)
        model = make(timeout=0.1) if answer is never else make()
        assert (await failing(model)).kind is kind

    async def test_nobody_listening_is_unreachable(self):
        model = Claude(client=AsyncAnthropic(base_url="http://127.0.0.1:9", api_key="k"), retries=0)
        assert (await failing(model)).kind is ModelFailure.UNREACHABLE
        await model.close()

    async def test_a_wrong_key_is_refused_by_the_server(self, make: Make):
        assert (await failing(make(key="other"))).kind is ModelFailure.UNAUTHORIZED

    async def test_the_detail_names_status_words_and_request_and_not_the_conversation(
        self, api: MessagesApi, make: Make
    ):
        error = await failing(make(), prompt(AssistantMessage((Text("my secret"),))))
        assert str(error) == (
            'refused_request: HTTP 400 invalid_request_error: messages: first message must use the "user" role '
            "(request req_0001)"
        )

    @pytest.mark.parametrize(
        ("header", "seconds"), [({"retry_after": "7"}, 7.0), ({"retry_after_ms": "1500"}, 1.5), ({}, None)]
    )
    async def test_says_when_to_come_back(
        self, api: MessagesApi, make: Make, header: Any, seconds: float | None
    ):
        api.will(rate_limited(**header))
        assert (await failing(make())).retry_after == seconds

    @pytest.mark.parametrize("retry_after", ["3600", formatdate(4_000_000_000, usegmt=True)])
    async def test_a_long_wait_is_the_runs_to_wait_for(self, api: MessagesApi, make: Make, retry_after: str):
        api.will(rate_limited(retry_after=retry_after))
        error = await failing(make(retries=5))
        assert error.kind is ModelFailure.RATE_LIMITED
        assert error.retry_after is not None
        assert error.retry_after >= 3600
        assert len(api.received) == 1


class TestRetries:
    @pytest.mark.parametrize("answer", [rate_limited(**SOON), overloaded(**SOON), broken(**SOON)])
    async def test_the_sdk_tries_again(self, api: MessagesApi, make: Make, answer: Any):
        api.will(answer, answer, message("Hello."))
        assert (await make(retries=2).reply(prompt())).message.text == "Hello."
        assert len(api.received) == 3

    async def test_and_gives_up(self, api: MessagesApi, make: Make):
        api.will(*[overloaded(**SOON)] * 3)
        assert (await failing(make(retries=2))).kind is ModelFailure.OVERLOADED
        assert len(api.received) == 3

    async def test_not_what_cannot_help(self, api: MessagesApi, make: Make):
        api.will(failure(400, "invalid_request_error", "no"))
        await failing(make(retries=2))
        assert len(api.received) == 1


class TestAnAgent:
    """The refunds example on Claude: everything that it sends is something the API takes."""

    @pytest.fixture(autouse=True)
    def data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SIGNOFF_DATA_DIR", str(tmp_path))

    async def test_pauses_and_goes_on_in_another_process(self, api: MessagesApi, make: Make):
        asked = tool_use("toolu_1", "issue_refund", order_id="A-1042", amount=5000)
        api.will(message(THINKING, "I refund it.", asked), message("Done."))
        outcome = await refunds.build(make()).run("Refund $5,000 on order A-1042")
        assert isinstance(outcome, Paused)
        outcome = await refunds.build(make()).resume(outcome.checkpoint, Approved(by="Ann"))
        assert isinstance(outcome, Finished)
        assert outcome.text == "Done."
        turns = api.body["messages"]
        assert turns[1]["content"][0] == THINKING
        assert turns[2]["content"][0]["content"] == "refunded 5000 USD on order A-1042"
        assert {tool["name"] for tool in api.body["tools"]} >= {"issue_refund", "ask_user"}

    async def test_tells_claude_of_a_no_as_an_error(self, api: MessagesApi, make: Make):
        calls = [tool_use(f"toolu_{n}", "issue_refund", order_id=f"A-{n}", amount=n) for n in (10, 5000)]
        api.will(message(*calls), message("One was declined."))
        agent = refunds.build(make())
        outcome = await agent.run("Refund both")
        assert isinstance(outcome, Paused)
        await agent.resume(outcome.checkpoint, Declined(by="Bob", note="not this week"))
        ran, declined = api.body["messages"][-1]["content"]
        assert (ran["tool_use_id"], declined["tool_use_id"]) == ("toolu_10", "toolu_5000")
        assert "is_error" not in ran
        assert declined["is_error"] is True
        assert "not this week" in declined["content"]

    async def test_comes_back_after_an_overload(self, api: MessagesApi, make: Make):
        api.will(overloaded(retry_after_ms="1"), message("Hello."))
        outcome = await refunds.build(make()).run("hi")
        assert isinstance(outcome, Finished)
        assert outcome.text == "Hello."


class TestTheServer:
    """The fake refuses what the real one refuses; else the tests above would prove nothing."""

    async def refusal(self, api: MessagesApi, body: Any, **headers: str) -> tuple[int, str]:
        sent = {"x-api-key": api.key, "anthropic-version": "2026-10-21", **headers}
        async with (
            ClientSession() as session,
            session.post(f"{api.url}/v1/messages", json=body, headers=sent) as got,
        ):
            envelope = await got.json()
            assert envelope["type"] == "error"
            assert envelope["request_id"] == got.headers["request-id"]
            return got.status, envelope["error"]["message"]

    @pytest.mark.parametrize("missing", ["model", "max_tokens", "messages"])
    async def test_a_missing_field(self, api: MessagesApi, missing: str):
        body = {name: value for name, value in GOOD.items() if name != missing}
        assert await self.refusal(api, body) == (400, f"{missing}: Field required")

    async def test_missing_headers(self, api: MessagesApi):
        assert (await self.refusal(api, GOOD, **{"x-api-key": ""}))[0] == 401
        assert (await self.refusal(api, GOOD, **{"anthropic-version": ""}))[0] == 400

    @pytest.mark.parametrize(
        ("messages", "words"),
        [
            ([], "at least one message"),
            ([{"role": "system", "content": "hi"}], "Unexpected role"),
            ([{"role": "assistant", "content": "hi"}], "first message must use"),
            ([{"role": "user", "content": ""}], "non-empty content"),
            ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "must be non-empty"),
            ([{"role": "user", "content": " "}], "non-whitespace"),
            ([{"role": "user", "content": [{"type": "dance"}]}], "expected tags"),
            (
                [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}],
                "unexpected `tool_use_id`",
            ),
            (
                [{"role": "user", "content": "go"}, {"role": "assistant", "content": [tool_use("t", "x")]}],
                "without `tool_result` blocks",
            ),
            (
                [
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": [tool_use("t", "x")]},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "x"},
                            {"type": "tool_result", "tool_use_id": "t"},
                        ],
                    },
                ],
                "without `tool_result` blocks",
            ),
            (
                [
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": [tool_use("t", "x")] * 2},
                ],
                "must be unique",
            ),
            (
                [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Yes "}],
                "prefill",
            ),
        ],
    )
    async def test_bad_messages(self, api: MessagesApi, messages: Any, words: str):
        status, text = await self.refusal(api, {**GOOD, "messages": messages})
        assert status == 400
        assert words in text

    @pytest.mark.parametrize(
        ("tools", "words"),
        [
            ([{"name": "a", "input_schema": {"type": "object"}}] * 2, "unique"),
            ([{"name": "a"}], "input_schema: Field required"),
            ([{"name": "a", "input_schema": {}}], "input_schema.type: Field required"),
            ([{"name": "a", "input_schema": {"type": "string"}}], "should be 'object'"),
            ([{"name": "a", "input_schema": {"type": "object", "properties": 1}}], "draft 2020-12"),
            ([{"name": "a b", "input_schema": {"type": "object"}}], "should match pattern"),
        ],
    )
    async def test_bad_tools(self, api: MessagesApi, tools: Any, words: str):
        status, text = await self.refusal(api, {**GOOD, "tools": tools})
        assert status == 400
        assert words in text


class TestByName:
    def test_resolves_a_family_and_a_version(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        assert resolve("claude:claude-opus-5-5").name == "claude-opus-5-5"
        assert resolve("claude").name.startswith("claude-")

    def test_without_a_key_it_says_what_to_set(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(ClaudeNotConfigured, match="ANTHROPIC_API_KEY"):
            resolve("claude")

    def test_an_unknown_family_is_named(self):
        with pytest.raises(UnknownModel, match="'gpt'"):
            resolve("gpt")

    def test_the_sdk_is_imported_only_when_it_is_asked_for(self):
        code = "import sys, agent.models, agent.scripted; sys.exit('anthropic' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
