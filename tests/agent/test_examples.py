"""The examples: what they read from real text, what they say of every outcome, and what really gets done."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent import told
from agent.agent import Agent
from agent.checkin import AnyAsk, CheckIn, Question
from agent.decision import AnyDecision, Approved, Declined, InputReceived
from agent.examples import coworker, refunds
from agent.examples.coworker_rules import RULES as COWORKER_RULES
from agent.examples.notes import read_notes
from agent.examples.refund_rules import HELP, RULES
from agent.examples.wish import Wish, read_wish, read_wishes
from agent.input_request import InputRequest
from agent.messages import (
    AssistantMessage,
    Message,
    ResultsMessage,
    ResultStatus,
    ToolResult,
    ToolUse,
    UserMessage,
)
from agent.model import Prompt
from agent.run import FinishReason
from agent.runner import Finished, Outcome, Paused
from agent.scripted import Rule, Scripted


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIGNOFF_DATA_DIR", str(tmp_path))
    return tmp_path


class TestReadingWishes:
    @pytest.mark.parametrize(
        ("text", "wish"),
        [
            ("Refund $5,000 on order A-1042, it arrived broken", Wish("A-1042", (5000,), "USD", "Arrived broken")),
            ("refund 5000 USD for a-1042", Wish("A-1042", (5000,), "USD")),
            ("Please refund USD 300 on order A-7", Wish("A-7", (300,), "USD")),
            ("A-1042, 4 200 € zurück", Wish("A-1042", (4200,), "EUR")),
            ("4\u202f200 EUR on A-1042", Wish("A-1042", (4200,), "EUR")),
            ("€4.200 on A-1042", Wish("A-1042", (4200,), "EUR")),
            ("1,200.00 USD on A-1042", Wish("A-1042", (1200,), "USD")),
            ("$2.5k on A-1042", Wish("A-1042", (2500,), "USD")),
            ("refund order 1042 for 300 dollars", Wish("1042", (300,), "USD")),
            ("refund #1042: 80", Wish("1042", (80,))),
            ("Refund 8 on A-1 because Mia waited 3 weeks", Wish("A-1", (8,), "", "Mia waited 3 weeks")),
            ("A-1042 arrived 3 days late, refund it", Wish("A-1042", ())),
            ("refund 20% of A-1042", Wish("A-1042", ())),
            ("49.99 USD on A-1042", Wish("A-1042", (49, 50), "USD")),
            ("between $400 and $500 on A-1042", Wish("A-1042", (400, 500), "USD")),
            ("£50 on A-1042", Wish("A-1042", (50,), "GBP")),
            ("请给订单 A-1042 退款 5000 美元,因为商品损坏", Wish("A-1042", (5000,), "USD", "商品损坏")),
            ("hello", Wish()),
        ],
    )  # fmt: skip
    def test_one(self, text: str, wish: Wish):
        assert read_wish(text) == wish

    @pytest.mark.parametrize(
        "text",
        [
            "Refund $50 on A-1 and $6,000 on A-2",
            "Refund A-1: $50; A-2: $6,000",
            "Refund $50 on A-1, 6000 USD on A-2",
            "Refund $50 on A-1\nRefund $6,000 on A-2",
        ],
    )
    def test_several(self, text: str):
        assert [(wish.order_id, wish.amount) for wish in read_wishes(text)] == [("A-1", 50), ("A-2", 6000)]

    def test_two_amounts_on_one_order_are_one_wish_to_be_settled(self):
        (wish,) = read_wishes("Refund $50 and $60 on A-1")
        assert wish.amount is None


class Talk:
    """Drives rules through results that a test chooses."""

    def __init__(self, rules: Sequence[Rule], said: str) -> None:
        self.model = Scripted(rules)
        self.transcript: list[Message] = [UserMessage(said)]
        self.message = AssistantMessage(())

    async def reply(self) -> str:
        reply = await self.model.reply(Prompt("", (), self.transcript))
        self.message = reply.message
        self.transcript.append(reply.message)
        return reply.message.text

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [(use.name, use.arguments) for use in self.message.tool_uses]

    async def hears(self, said: str) -> str:
        self.transcript.append(UserMessage(said))
        return await self.reply()

    async def gets(self, *contents: str, status: ResultStatus = ResultStatus.OK) -> str:
        """The calls' results, in order; then the reply to them."""
        uses: tuple[ToolUse, ...] = self.message.tool_uses
        pairs = zip(uses, contents, strict=True)
        results = tuple(ToolResult(use.id, use.name, content, status) for use, content in pairs)
        self.transcript.append(ResultsMessage(results))
        return await self.reply()


async def refund_asked(said: str = "Refund $5,000 on order A-1042, it arrived broken") -> Talk:
    talk = Talk(RULES, said)
    await talk.reply()
    await talk.gets(*["order A-1042: no refund so far"] * len(talk.calls))
    return talk


class TestRefundRules:
    async def test_looks_the_order_up_and_then_asks_for_exactly_what_was_typed(self):
        talk = Talk(RULES, "Refund $5,000 on order A-1042, it arrived broken")
        await talk.reply()
        assert talk.calls == [("lookup_order", {"order_id": "A-1042"})]
        intent = await talk.gets("order A-1042: no refund so far")
        assert talk.calls == [
            (
                "issue_refund",
                {"order_id": "A-1042", "amount": 5000, "currency": "USD", "reason": "Arrived broken"},
            )
        ]
        assert "no refund so far" in intent

    @pytest.mark.parametrize(
        ("content", "status", "says"),
        [
            (
                "refunded 5000 USD on order A-1042",
                ResultStatus.OK,
                "Done. Refunded 5000 USD on order A-1042.",
            ),
            (
                told.declined("not this week"),
                ResultStatus.DECLINED,
                'Not done. The refund of 5000 USD on order A-1042 was declined: "not this week". '
                "Name another amount, and I ask again.",
            ),
            (
                told.declined(""),
                ResultStatus.DECLINED,
                "Not done. The refund of 5000 USD on order A-1042 was declined. Name another amount, and I ask again.",
            ),
            (
                told.expired("check_in"),
                ResultStatus.EXPIRED,
                "Not done. Nobody answered about the refund of 5000 USD on order A-1042 in time, so nothing was run.",
            ),
            (
                told.denied("refunds are closed"),
                ResultStatus.DENIED,
                "Not done: the refund of 5000 USD on order A-1042. Refunds are closed.",
            ),
            (
                told.refused("INVALID_ARGUMENTS", "amount: a whole number from 1 to 10000 expected"),
                ResultStatus.ERROR,
                "Not done: the refund of 5000 USD on order A-1042. Amount: a whole number from 1 to 10000 expected.",
            ),
            (
                told.raised("TimeoutError"),
                ResultStatus.ERROR,
                "The refund of 5000 USD on order A-1042 failed: the tool failed: TimeoutError. "
                "Check what happened before you ask again.",
            ),
            (
                told.NOT_KNOWN,
                ResultStatus.UNKNOWN,
                "It is not known whether the refund of 5000 USD on order A-1042 happened. "
                "Check it before you ask again.",
            ),
            (
                told.did_not_happen(),
                ResultStatus.CANCELLED,
                "Not done: the refund of 5000 USD on order A-1042. A person confirmed that this took no effect.",
            ),
        ],
    )
    async def test_says_what_became_of_it(self, content: str, status: ResultStatus, says: str):
        assert await (await refund_asked()).gets(content, status=status) == says

    async def test_a_status_that_is_no_success_never_reads_as_one(self):
        for status in ResultStatus:
            if status is not ResultStatus.OK:
                text = await (await refund_asked()).gets("refunded 5000 USD on order A-1042", status=status)
                assert not text.startswith("Done"), f"{status}: {text}"

    async def test_says_the_amount_that_really_ran_and_who_changed_it(self):
        ran = "refunded 4200 USD on order A-1042"
        by = 'ann@example.com changed the arguments before approving ("cap"). Do not repeat the original call. '
        text = await (await refund_asked()).gets(f'{ran}\n\n{by}What ran: {{"amount":4200}}')
        assert text == (
            "Done. Refunded 4200 USD on order A-1042. ann@example.com changed the amount from 5000."
        )

    async def test_reads_a_long_amount_out(self):
        talk = await refund_asked("Refund 10000 EUR on order A-1042")
        assert await talk.gets("refunded 10000 EUR on order A-1042") == (
            "Done. Refunded 10000 (10,000) EUR on order A-1042."
        )

    async def test_several_orders_are_one_reply_with_several_calls(self):
        talk = await refund_asked("Refund $50 on A-1 and $6,000 on A-2")
        assert [(name, call["order_id"], call["amount"]) for name, call in talk.calls] == [
            ("issue_refund", "A-1", 50),
            ("issue_refund", "A-2", 6000),
        ]

    async def test_a_missing_order_is_collected_with_what_is_known(self):
        talk = Talk(RULES, "Refund me 300 euros")
        await talk.reply()
        assert talk.calls == [("collect_refund_details", {"amount": 300, "currency": "EUR"})]
        await talk.gets(
            json.dumps(
                {"status": "input_received", "values": {"order_id": "A-7", "amount": 300, "currency": "EUR"}}
            )
        )
        assert talk.calls == [("lookup_order", {"order_id": "A-7"})]

    async def test_a_missing_amount_is_asked_for(self):
        talk = Talk(RULES, "Refund order A-55, wrong size")
        await talk.reply()
        ((name, arguments),) = talk.calls
        assert (name, arguments) == ("ask_user", {"question": "How much do you want refunded on order A-55?"})
        await talk.gets("about 40 dollars")
        assert talk.calls == [("lookup_order", {"order_id": "A-55"})]

    async def test_between_amounts_a_person_chooses(self):
        talk = Talk(RULES, "Refund 49.99 USD on A-55")
        await talk.reply()
        assert talk.calls[0][1]["options"] == ["49 USD", "50 USD"]
        await talk.gets("50 USD")
        await talk.gets("order A-55: no refund so far")
        assert talk.calls[0][1]["amount"] == 50

    async def test_does_not_ask_for_ever(self):
        talk = Talk(RULES, "Refund A-55")
        await talk.reply()
        text = await talk.gets("never mind")
        assert text.startswith("Not done. I found no amount in that.")
        assert talk.calls == []

    async def test_a_question_nobody_answered_ends_in_a_plain_statement(self):
        talk = Talk(RULES, "Refund A-55")
        await talk.reply()
        text = await talk.gets(told.expired("question"), status=ResultStatus.EXPIRED)
        assert text == "Not done. Nobody answered about the amount in time, so nothing was run."

    async def test_after_a_no_another_amount_is_enough(self):
        talk = await refund_asked()
        await talk.gets(told.declined("too much"), status=ResultStatus.DECLINED)
        await talk.hears("4000 then")
        assert talk.calls == [("lookup_order", {"order_id": "A-1042"})]
        await talk.gets("order A-1042: no refund so far")
        assert talk.calls[0][1] == {
            "order_id": "A-1042",
            "amount": 4000,
            "currency": "USD",
            "reason": "Arrived broken",
        }

    async def test_after_a_no_the_same_is_not_asked_for_again(self):
        talk = await refund_asked()
        await talk.gets(told.declined(""), status=ResultStatus.DECLINED)
        await talk.hears("Refund order A-1042 please")
        assert [name for name, _ in talk.calls] == ["ask_user"]

    async def test_after_a_yes_a_number_alone_refunds_nothing(self):
        talk = await refund_asked()
        await talk.gets("refunded 5000 USD on order A-1042")
        assert await talk.hears("and 300") == HELP

    async def test_other_currencies_are_refused_in_words(self):
        talk = Talk(RULES, "Refund 50 pounds on A-1")
        assert "USD or EUR" in await talk.reply()

    @pytest.mark.parametrize("said", ["hi", "what can you do?", "5000", "😀", "   "])
    async def test_small_talk_gets_a_helpful_line(self, said: str):
        talk = Talk(RULES, said)
        assert await talk.reply() == HELP
        assert talk.calls == []

    async def test_was_it_refunded(self):
        talk = Talk(RULES, "Was A-1042 refunded?")
        await talk.reply()
        assert talk.calls == [("lookup_order", {"order_id": "A-1042"})]
        text = await talk.gets("order A-1042: refunded 50 USD so far")
        assert text == "Order A-1042: refunded 50 USD so far."
        assert talk.calls == []


def finished(outcome: Outcome) -> str:
    assert isinstance(outcome, Finished), f"paused: {outcome}"
    assert outcome.reason is FinishReason.END_TURN
    return outcome.text


def paused(outcome: Outcome) -> AnyAsk:
    assert isinstance(outcome, Paused), f"finished: {outcome}"
    (ask,) = outcome.asks
    return ask


async def answer(agent: Agent, outcome: Outcome, decision: AnyDecision | str) -> Outcome:
    """In a fresh agent, as in another process: the checkpoint is all that crosses."""
    assert isinstance(outcome, Paused)
    return await agent.resume(outcome.checkpoint, decision)


class TestRefundsAgent:
    def ledger(self, data: Path) -> list[dict[str, Any]]:
        path = data / "refunds" / "ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def test_small_refunds_run_at_once(self, data: Path):
        text = finished(await refunds.build().run("Refund $800 on order A-1042, it arrived broken"))
        assert text == "Done. Refunded 800 USD on order A-1042."
        assert self.ledger(data) == [
            {"order_id": "A-1042", "amount": 800, "currency": "USD", "reason": "Arrived broken"}
        ]

    async def test_large_ones_wait_for_a_person_with_the_evidence(self, data: Path):
        ask = paused(await refunds.build().run("Refund $5,000 on order A-1042, it arrived broken"))
        assert isinstance(ask, CheckIn)
        assert ask.question == "Refund 5000 USD on order A-1042?"
        assert "refunds_above_1000" in " ".join(ask.reasons)
        drivers: Any = ask.evidence["drivers"]
        assert drivers[0]["id"] == "task-1"
        trail: Any = ask.evidence["trail"]
        assert trail[0]["tool_calls"] == [{"name": "lookup_order", "ok": True}]
        assert self.ledger(data) == []

    async def test_approved_in_another_process_it_runs_once(self, data: Path):
        outcome = await refunds.build().run("Refund $5,000 on order A-1042")
        text = finished(await answer(refunds.build(), outcome, Approved(by="Ann")))
        assert text == "Done. Refunded 5000 USD on order A-1042."
        assert [entry["amount"] for entry in self.ledger(data)] == [5000]

    async def test_edited_the_edit_runs_and_is_told(self, data: Path):
        outcome = await refunds.build().run("Refund $5,000 on order A-1042")
        ask = paused(outcome)
        assert isinstance(ask, CheckIn)
        edited = Approved(by="Ann", arguments={**ask.action.arguments, "amount": 4200})
        text = finished(await answer(refunds.build(), outcome, edited))
        assert text == "Done. Refunded 4200 USD on order A-1042. Ann changed the amount from 5000."
        assert [entry["amount"] for entry in self.ledger(data)] == [4200]

    async def test_declined_nothing_runs_and_the_note_is_told(self, data: Path):
        outcome = await refunds.build().run("Refund $5,000 on order A-1042")
        text = finished(await answer(refunds.build(), outcome, Declined(by="Bob", note="not this week")))
        assert text.startswith(
            'Not done. The refund of 5000 USD on order A-1042 was declined: "not this week".'
        )
        assert self.ledger(data) == []

    async def test_what_is_missing_is_collected_in_parts(self, data: Path):
        agent = refunds.build()
        outcome = await agent.run("I want my money back")
        request = paused(outcome)
        assert isinstance(request, InputRequest)
        order = InputReceived(by="Mia", request_id=request.request_id, values={"order_id": "A-7"})
        outcome = await answer(agent, outcome, order)
        assert isinstance(paused(outcome), InputRequest)
        amount = InputReceived(by="Mia", request_id=request.request_id, values={"amount": 80})
        assert finished(await answer(agent, outcome, amount)) == "Done. Refunded 80 USD on order A-7."

    async def test_a_question_takes_any_answer(self):
        agent = refunds.build()
        outcome = await agent.run("Refund order A-7")
        assert isinstance(paused(outcome), Question)
        assert finished(await answer(agent, outcome, "80 euros")) == "Done. Refunded 80 EUR on order A-7."

    async def test_too_much_is_refused_before_anybody_is_asked(self, data: Path):
        text = finished(await refunds.build().run("Refund $50,000 on order A-1042"))
        assert text.startswith("Not done: the refund of 50000 (50,000) USD on order A-1042.")
        assert self.ledger(data) == []

    async def test_the_next_message_knows_what_was_refunded(self):
        agent = refunds.build()
        await agent.run("Refund $800 on order A-1042")
        assert finished(await agent.run("Was A-1042 refunded?")) == "Order A-1042: refunded 800 USD so far."


class TestReadingNotes:
    @pytest.mark.parametrize(
        ("text", "items"),
        [
            (
                "Shipped the login page; next: billing; blocked: no test account. Post it to #team.",
                (("Done", "Shipped the login page"), ("Next", "Billing"), ("Blocked", "No test account")),
            ),
            (
                "Draft the status, don't post it:\n- shipped login\n- write tests\nNext: billing; hiring",
                (("Done", "Shipped login"), ("Done", "Write tests"), ("Next", "Billing"), ("Next", "Hiring")),
            ),
            ("Please post this to #ops: The database moved.", (("Done", "The database moved"),)),
            ("We shipped. Waiting for legal.", (("Done", "We shipped"), ("Blocked", "Waiting for legal"))),
            ("- send invoices", (("Done", "Send invoices"),)),
            ("hi", ()),
            ("Write my weekly status", ()),
            ("Hello, what can you do?", ()),
        ],
    )
    def test_sorts_them(self, text: str, items: tuple[tuple[str, str], ...]):
        assert read_notes(text).items == items

    @pytest.mark.parametrize(
        ("text", "channel", "keep"),
        [
            ("Shipped. Post it to #Eng-Updates.", "#eng-updates", False),
            ("Shipped", "", False),
            ("Just save a draft: shipped", "", True),
            ("Shipped. Don't post it.", "", True),
        ],
    )
    def test_where_to(self, text: str, channel: str, keep: bool):
        notes = read_notes(text)
        assert (notes.channel, notes.keep) == (channel, keep)

    def test_the_status_has_only_sections_with_notes(self):
        assert (
            read_notes("Shipped; blocked: legal").status
            == "Weekly status\n\nDone\n- Shipped\n\nBlocked\n- Legal"
        )


class TestCoworker:
    NOTES = "Shipped the login page; next: billing. Post it to #team."

    async def test_saves_without_asking_and_asks_before_posting(self, data: Path):
        ask = paused(await coworker.build().run(self.NOTES))
        assert isinstance(ask, CheckIn)
        assert ask.question == "Post this to #team?"
        draft = (data / "coworker" / "drafts" / "weekly-status.md").read_text()
        assert ask.action.arguments == {"channel": "#team", "text": draft.rstrip("\n")}
        assert not (data / "coworker" / "channels").exists()

    async def test_approved_it_posts_exactly_that(self, data: Path):
        outcome = await coworker.build().run(self.NOTES)
        ask = paused(outcome)
        assert isinstance(ask, CheckIn)
        assert (
            finished(await answer(coworker.build(), outcome, Approved(by="Ann"))) == "Done. Posted to #team."
        )
        posted = (data / "coworker" / "channels" / "team.md").read_text()
        assert posted == f"{ask.action.arguments['text']}\n\n"

    async def test_declined_it_keeps_the_draft_and_posts_nothing(self, data: Path):
        outcome = await coworker.build().run(self.NOTES)
        text = finished(await answer(coworker.build(), outcome, Declined(by="Bob", note="not this week")))
        assert text == (
            'Not done. The post to #team was declined: "not this week". '
            "The draft stays in drafts/weekly-status.md; nothing was posted."
        )
        assert (data / "coworker" / "drafts" / "weekly-status.md").exists()
        assert not (data / "coworker" / "channels").exists()

    async def test_edited_it_posts_the_edit_where_the_edit_says(self, data: Path):
        outcome = await coworker.build().run(self.NOTES)
        edited = Approved(by="Ann", arguments={"channel": "#ops", "text": "Short."})
        text = finished(await answer(coworker.build(), outcome, edited))
        assert text == "Done. Posted to #ops. Ann changed it before it was posted."
        assert (data / "coworker" / "channels" / "ops.md").read_text() == "Short.\n\n"

    async def test_a_draft_alone_asks_nobody(self, data: Path):
        text = finished(await coworker.build().run("Just save a draft: shipped the login page"))
        assert text == "Done. Saved drafts/weekly-status.md; nothing was posted."

    async def test_without_notes_it_asks_for_them(self):
        agent = coworker.build()
        outcome = await agent.run("Write my weekly status for #ops")
        assert isinstance(paused(outcome), Question)
        ask = paused(await answer(agent, outcome, "shipped the login page"))
        assert isinstance(ask, CheckIn)
        assert ask.action.arguments["channel"] == "#ops"

    async def test_an_unknown_outcome_does_not_claim_that_nothing_was_posted(self):
        talk = Talk(COWORKER_RULES, self.NOTES)
        await talk.reply()
        await talk.gets("saved draft weekly-status")
        text = await talk.gets(told.NOT_KNOWN, status=ResultStatus.UNKNOWN)
        assert "nothing was posted" not in text
        assert text.startswith("It is not known whether the post to #team happened.")

    @pytest.mark.parametrize("channel", ["#../../etc/passwd", "team", "#a/b", "#"])
    async def test_a_channel_is_no_path(self, channel: str):
        with pytest.raises(Exception, match="channel"):
            coworker.post_to_channel.validate({"channel": channel, "text": "x"})

    async def test_small_talk_gets_a_helpful_line(self):
        assert finished(await coworker.build().run("hi")).startswith("I write the weekly status.")


def test_the_examples_are_ready_made_agents():
    assert refunds.agent.name == "refunds"
    assert coworker.agent.name == "coworker"


def test_the_same_agent_runs_on_another_model():
    other = Scripted([], name="other")
    assert refunds.build(other).model is other
    assert refunds.build(other).tools == refunds.agent.tools
