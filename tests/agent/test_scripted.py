"""The scripted model: rules over real text, ids from the transcript alone, and a real model's refusals."""

import pytest

from agent.messages import (
    AssistantMessage,
    Message,
    ResultsMessage,
    ResultStatus,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
    check_pairing,
)
from agent.model import ModelError, ModelFailure, Prompt, Reply, StopReason
from agent.scripted import Conversation, Exchange, Piece, Rule, Scripted, call, otherwise, say


def answered(message: AssistantMessage, content: str = "ok") -> ResultsMessage:
    results = tuple(ToolResult(use.id, use.name, content, ResultStatus.OK) for use in message.tool_uses)
    return ResultsMessage(results)


async def reply(transcript: list[Message], *rules: Rule) -> Reply:
    return await Scripted(rules).reply(Prompt("", (), transcript))


def twice(conversation: Conversation) -> list[Piece]:
    return [say("Both at once."), call("a", x=1), call("b")]


class TestReplies:
    async def test_the_first_rule_that_replies_is_the_reply(self):
        def never(conversation: Conversation) -> None:
            return None

        got = await reply([UserMessage("hi")], never, otherwise("second"), otherwise("third"))
        assert got.message == AssistantMessage((Text("second"),))
        assert got.stop is StopReason.END_TURN

    async def test_several_calls_in_one_reply(self):
        got = await reply([UserMessage("go")], twice)
        assert got.stop is StopReason.TOOL_USE
        assert got.message.text == "Both at once."
        assert [(use.name, use.arguments) for use in got.message.tool_uses] == [("a", {"x": 1}), ("b", {})]

    async def test_a_rule_may_return_one_call_alone(self):
        got = await reply([UserMessage("go")], lambda conversation: call("a", tool_name="x"))
        assert got.message.tool_uses[0].arguments == {"tool_name": "x"}

    async def test_ids_are_unique_over_a_long_conversation(self):
        transcript: list[Message] = [UserMessage("go")]
        for _ in range(20):
            message = (await reply(transcript, twice)).message
            transcript += [message, answered(message)]
        ids = [use.id for said in transcript if isinstance(said, AssistantMessage) for use in said.tool_uses]
        assert len(set(ids)) == len(ids) == 40
        check_pairing(transcript)

    async def test_another_process_gives_the_same_ids(self):
        transcript: list[Message] = [UserMessage("go")]
        first, second = await reply(transcript, twice), await reply(transcript, twice)
        assert first == second

    async def test_no_rule_that_replies_is_a_clear_failure(self):
        with pytest.raises(ModelError, match="none of the 0 rules") as caught:
            await reply([UserMessage("hi")])
        assert caught.value.kind is ModelFailure.REFUSED_REQUEST

    @pytest.mark.parametrize(
        "transcript",
        [
            [],
            [AssistantMessage((Text("hi"),))],
            [UserMessage("go"), AssistantMessage((ToolUse("t1", "a", {}),))],
            [
                UserMessage("go"),
                AssistantMessage((ToolUse("t1", "a", {}), ToolUse("t2", "a", {}))),
                ResultsMessage((ToolResult("t2", "a", "", ResultStatus.OK),)),
            ],
        ],
        ids=["empty", "assistant first", "unanswered", "half answered"],
    )
    async def test_refuses_what_a_real_model_refuses(self, transcript: list[Message]):
        with pytest.raises(ModelError) as caught:
            await reply(transcript, otherwise("hm"))
        assert caught.value.kind is ModelFailure.REFUSED_REQUEST


class TestConversation:
    A = AssistantMessage((ToolUse("t1", "look", {"id": 1}), ToolUse("t2", "look", {"id": 2})))
    B = AssistantMessage((ToolUse("t3", "pay", {"sum": 5}),))

    def transcript(self) -> list[Message]:
        return [
            UserMessage("first"),
            AssistantMessage((Text("Hello."),)),
            UserMessage("second"),
            self.A,
            answered(self.A, "found"),
            self.B,
            answered(self.B, "paid"),
        ]

    def test_sees_what_was_said_last_and_what_came_of_it(self):
        conversation = Conversation(self.transcript())
        assert conversation.said == "second"
        assert [outcome.use.name for outcome in conversation.now.outcomes] == ["look", "look", "pay"]
        assert [outcome.use.arguments["id"] for outcome in conversation.now.of("look")] == [1, 2]

    def test_the_news_are_the_results_that_just_came_in(self):
        assert [outcome.result.content for outcome in Conversation(self.transcript()).news] == ["paid"]
        assert Conversation([*self.transcript(), UserMessage("third")]).news == ()

    def test_exchanges_go_back_from_the_newest(self):
        said = [
            exchange.said for exchange in Conversation([*self.transcript(), UserMessage("third")]).exchanges()
        ]
        assert said == ["third", "second", "first"]

    def test_an_empty_conversation_says_nothing(self):
        assert Conversation([]).now == Exchange("")
        assert Conversation([]).news == ()

    def test_reads_no_further_back_than_asked(self):
        class Long(list[Message]):
            looks = 0

            def __getitem__(self, place):
                type(self).looks += 1
                return super().__getitem__(place)

        conversation = Conversation(Long([UserMessage("old")] * 10_000 + self.transcript()))
        assert conversation.said == "second"
        assert conversation.news
        assert Long.looks < 30
