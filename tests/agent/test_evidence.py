"""Evidence: its exact shape, its bounds, and that failing user code costs evidence and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import evidence
from agent.evidence import EvidenceRequest, will_do
from agent.messages import (
    AssistantMessage,
    Message,
    ResultsMessage,
    ResultStatus,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from agent.scorer import overlap

SYSTEM = "You are a refunds assistant. Refund only verified orders.\nNever refund twice!"


def looked_up(number: int, *, status: ResultStatus = ResultStatus.OK) -> list[Message]:
    use = ToolUse(f"t{number}", "lookup_order", {"order_id": f"A-{number}"})
    result = ToolResult(use.id, "lookup_order", f"order A-{number} was delivered", status)
    return [AssistantMessage((Text(f"Looking up A-{number}."), use)), ResultsMessage((result,))]


REFUND = AssistantMessage((Text("A refund is due."), ToolUse("r1", "issue_refund", {"amount": 5000})))


def request(
    transcript: Sequence[Message] = (UserMessage("Refund $5,000 on order A-1"), *looked_up(1), REFUND),
    **other: Any,
) -> EvidenceRequest:
    given: dict[str, Any] = {
        "tool": "issue_refund",
        "description": "Refund an order.",
        "arguments": {"order_id": "A-1", "amount": 5000},
        "intent": "A refund is due.",
        "system": SYSTEM,
        "iteration": 2,
    }
    return EvidenceRequest(transcript=transcript, **{**given, **other})


def standard(asked: EvidenceRequest) -> dict[str, Any]:
    return evidence.standard(asked, overlap)


class TestWillDo:
    def test_says_the_description_and_the_arguments(self):
        assert will_do("pay", "Pay a bill.", {"to": "Mia", "sum": 5, "now": True}) == (
            "Pay a bill. — with to=Mia, sum=5, now=true"
        )

    def test_names_the_tool_without_a_description(self):
        assert will_do("pay", "  ", {"to": "Mia"}) == "pay — with to=Mia"

    def test_says_nothing_of_arguments_that_are_not_there(self):
        assert will_do("pay", "Pay a bill.", {}) == "Pay a bill."

    def test_keeps_every_value_on_one_line_and_short(self):
        line = will_do("note", "", {"text": "a\n\tb  c" + "x" * 100, "tags": ["ä", {"deep": None}]})
        text = line.removeprefix("note — with text=").partition(", tags=")[0]
        assert text == "a b c" + "x" * 54 + "…"
        assert len(text) == 60
        assert line.endswith('tags=["ä", {"deep": null}]')

    def test_counts_arguments_beyond_the_first_32(self):
        line = will_do("set", "", {f"k{n}": n for n in range(40)})
        assert line.endswith("k31=31, and 8 more")


class TestStandard:
    def test_has_exactly_these_parts(self):
        assert standard(request()) == {
            "will_do": "Refund an order. — with order_id=A-1, amount=5000",
            "read": [
                {"channel": "system", "summary": "You are a refunds assistant."},
                {"channel": "system", "summary": "Refund only verified orders."},
                {"channel": "system", "summary": "Never refund twice!"},
                {"channel": "task", "summary": "Refund $5,000 on order A-1"},
                {"channel": "result", "summary": "lookup_order: order A-1 was delivered"},
            ],
            "older": 0,
            "drivers": [
                {"id": "task-1", "channel": "task", "text": "Refund $5,000 on order A-1", "score": 0.8},
                {
                    "id": "result-3",
                    "channel": "result",
                    "text": "lookup_order: order A-1 was delivered",
                    "score": 0.2857,
                },
                {"id": "system-3", "channel": "system", "text": "Never refund twice!", "score": 0.1429},
                {
                    "id": "system-2",
                    "channel": "system",
                    "text": "Refund only verified orders.",
                    "score": 0.125,
                },
            ],
            "trail": [
                {
                    "iteration": 1,
                    "tool_calls": [{"name": "lookup_order", "ok": True}],
                    "summary": "Looking up A-1.",
                }
            ],
        }

    def test_ranks_what_drove_the_choice_best_first(self):
        drivers = standard(request())["drivers"]
        assert drivers[0]["id"] == "task-1"
        assert drivers[1]["id"] == "result-3"
        scores = [driver["score"] for driver in drivers]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) > 0

    def test_equal_scores_stay_in_the_order_of_the_conversation(self):
        pack = evidence.standard(request(), lambda choice, unit: 0.5)
        assert [driver["id"] for driver in cast(list[dict[str, Any]], pack["drivers"])] == [
            "system-1",
            "system-2",
            "system-3",
            "task-1",
            "result-3",
        ]

    def test_is_the_same_for_the_same_input(self):
        assert json.dumps(standard(request())) == json.dumps(standard(request()))

    def test_finds_drivers_in_chinese(self):
        asked = request(
            (UserMessage("请给订单退款,客户很着急"),), description="给订单退款", system="你是客服助手。"
        )
        drivers = standard(asked)["drivers"]
        assert [driver["id"] for driver in drivers] == ["task-1"]

    def test_each_result_of_a_message_has_an_id_of_its_own(self):
        results = tuple(ToolResult(f"t{n}", "look", f"{n}", ResultStatus.OK) for n in (1, 2, 3))
        asked = request((UserMessage("go"), AssistantMessage(()), ResultsMessage(results)), system="")
        pack = evidence.standard(asked, lambda choice, unit: 1.0)
        drivers = cast(list[dict[str, Any]], pack["drivers"])
        assert [driver["id"] for driver in drivers] == ["task-1", "result-3-1", "result-3-2", "result-3-3"]
        assert [driver["text"] for driver in drivers[1:]] == ["look: 1", "look: 2", "look: 3"]

    def test_a_scorer_sees_the_tool_its_description_and_the_values(self):
        seen: set[str] = set()

        def spy(choice: str, unit: str) -> float:
            seen.add(choice)
            return 0.0

        evidence.standard(request(arguments={"to": {"name": "Mia", "age": 4}, "vip": True, "x": None}), spy)
        assert seen == {"issue_refund Refund an order. Mia 4"}

    @pytest.mark.parametrize("score", [float("nan"), float("inf"), "much", None])
    def test_a_scorer_that_gives_no_number_costs_the_drivers_and_says_so(self, score: Any):
        pack = evidence.standard(request(), lambda choice, unit: score)
        assert pack["drivers"] == []
        assert len(cast(list[Any], pack["read"])) == 5
        assert str(pack["problem"]).startswith("the scorer failed (")

    def test_a_scorers_exception_is_named_without_its_text(self):
        def broken(choice: str, unit: str) -> float:
            raise RuntimeError(f"secret {unit}")

        assert evidence.standard(request(), broken)["problem"] == "the scorer failed (RuntimeError)"


class TestTrail:
    def test_tells_the_recorded_status_not_the_text(self):
        transcript = (
            UserMessage("go"),
            *looked_up(1, status=ResultStatus.ERROR),
            *looked_up(2),
            *looked_up(3, status=ResultStatus.DECLINED),
            REFUND,
        )
        trail = standard(request(transcript, iteration=4))["trail"]
        assert [(step["iteration"], step["tool_calls"][0]["ok"]) for step in trail] == [
            (1, False),
            (2, True),
            (3, False),
        ]

    def test_holds_this_runs_steps_only(self):
        earlier = [UserMessage("before"), *looked_up(1), AssistantMessage((Text("Done."),))]
        transcript = [*earlier, UserMessage("now"), *looked_up(2), REFUND]
        trail = standard(request(transcript, iteration=2))["trail"]
        assert [step["summary"] for step in trail] == ["Looking up A-2."]

    def test_says_what_was_called_when_nothing_was_said(self):
        use = ToolUse("t1", "lookup_order", {})
        result = ToolResult("t1", "lookup_order", "found", ResultStatus.OK)
        transcript = (UserMessage("go"), AssistantMessage((use,)), ResultsMessage((result,)), REFUND)
        assert standard(request(transcript))["trail"][0]["summary"] == "called lookup_order"

    def test_keeps_the_newest_20_steps(self):
        transcript = [UserMessage("go"), *(m for n in range(1, 31) for m in looked_up(n)), REFUND]
        trail = standard(request(transcript, iteration=31))["trail"]
        assert [step["iteration"] for step in trail] == list(range(11, 31))


class Watched(Sequence[Message]):
    """A long transcript that counts how often it is looked at."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.looks = 0

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        assert isinstance(index, int)
        self.looks += 1
        return UserMessage(f"message {index + 1}") if index % 2 == 0 else AssistantMessage((Text("Noted."),))


class TestBounds:
    def test_reads_no_more_of_a_long_conversation_than_its_end(self):
        transcript = Watched(10_000)
        pack = standard(request(transcript, system="", iteration=1))
        assert transcript.looks <= 410
        assert len(pack["read"]) == 200
        assert pack["read"][-1]["summary"] == "message 9999"
        assert pack["older"] == 10_000 - 400

    def test_stops_looking_where_there_is_little_to_find(self):
        transcript = (UserMessage("go"), *[AssistantMessage((Text("Thinking."),))] * 5_000)
        pack = standard(request(transcript, system="", iteration=1))
        assert pack["read"] == []
        assert pack["older"] == 5_001 - 600

    def test_counts_results_that_did_not_fit(self):
        results = tuple(ToolResult(f"t{n}", "look", f"{n}", ResultStatus.OK) for n in range(64))
        turns = [UserMessage("go"), *[AssistantMessage(()), ResultsMessage(results)] * 4]
        pack = standard(request(turns, system=""))
        assert len(pack["read"]) == 200
        assert pack["older"] == (256 - 200) + 2
        assert pack["read"][0]["summary"] == "look: 56"

    def test_a_long_system_prompt_leaves_half_of_the_places(self):
        system = "\n".join(f"Rule {n}" for n in range(150))
        transcript = [UserMessage(f"message {n}") for n in range(150)]
        pack = standard(request(transcript, system=system))
        channels = [unit["channel"] for unit in pack["read"]]
        assert channels == ["system"] * 100 + ["task"] * 100
        assert pack["older"] == 50 + 50

    def test_ids_stay_the_same_as_the_conversation_grows(self):
        short = [UserMessage("refund A-1"), *looked_up(1)]
        ids = {d["text"]: d["id"] for d in standard(request(short))["drivers"]}
        grown = {d["text"]: d["id"] for d in standard(request([*short, UserMessage("thanks")]))["drivers"]}
        assert ids.items() <= grown.items()

    def test_no_text_is_long_however_long_its_source(self):
        huge = "refund " * 200_000
        asked = request(
            (UserMessage(huge), AssistantMessage((Text(huge), ToolUse("t", "x", {}))), ResultsMessage(())),
            description=huge,
            system=huge,
            arguments={"refund": huge, "all": [huge]},
        )
        pack = standard(asked)
        assert len(json.dumps(pack)) < 5_000
        assert all(len(unit["summary"]) <= 160 for unit in pack["read"])

    def test_lists_at_most_20_drivers(self):
        transcript = [UserMessage(f"refund {n}") for n in range(50)]
        assert len(standard(request(transcript))["drivers"]) == 20


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), plain, max_size=5), st.text(max_size=50), st.text(max_size=50))
def test_evidence_is_plain_json_whatever_it_is_made_of(arguments: dict[str, Any], system: str, said: str):
    pack = standard(request((UserMessage(said),), arguments=arguments, system=system))
    assert json.loads(json.dumps(pack, allow_nan=False)) == pack


class TestMinimal:
    def test_is_the_line_alone(self):
        assert evidence.minimal(request()) == {"will_do": "Refund an order. — with order_id=A-1, amount=5000"}


class TestOwn:
    async def test_returns_what_the_assembler_made(self):
        assert await evidence.own(request(), lambda asked: {"for": asked.tool}) == {"for": "issue_refund"}

    async def test_waits_for_an_async_one(self):
        async def assembler(asked: EvidenceRequest) -> dict[str, Any]:
            return {"for": asked.tool}

        assert await evidence.own(request(), assembler) == {"for": "issue_refund"}

    async def test_keeps_a_copy(self):
        mine: dict[str, Any] = {"items": [1]}
        pack = await evidence.own(request(), lambda asked: mine)
        mine["items"].append(2)
        assert pack == {"items": [1]}

    @pytest.mark.parametrize(
        "made",
        [None, "text", [1], {"x": float("nan")}, {"x": object()}, {"x": {1}}, {1: "x"}, {"x": "y" * 70_000}],
        ids=["nothing", "text", "list", "nan", "object", "set", "key", "size"],
    )
    async def test_refuses_what_is_not_plain_json_and_says_so(self, made: Any):
        pack = await evidence.own(request(), lambda asked: made)
        assert pack["will_do"] == "Refund an order. — with order_id=A-1, amount=5000"
        assert str(pack["problem"]).startswith("the evidence could not be put together (")

    async def test_an_assembler_that_fails_costs_evidence_not_the_question(self):
        def broken(asked: EvidenceRequest) -> dict[str, Any]:
            raise LookupError(f"secret {asked.arguments}")

        pack = await evidence.own(request(), broken)
        assert pack == {
            "will_do": "Refund an order. — with order_id=A-1, amount=5000",
            "problem": "the evidence could not be put together (LookupError)",
        }


def test_a_request_is_immutable():
    asked = request()
    with pytest.raises(AttributeError):
        asked.tool = "other"  # pyright: ignore[reportAttributeAccessIssue]
    assert replace(asked, tool="other").tool == "other"
