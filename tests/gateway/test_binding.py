"""What was shown is what runs: documents that were changed in the store, code that changed, poisoned records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.action import capture
from agent.agent import Agent
from agent.decision import Approved
from agent.run import FinishReason, UnreadableState, load_state
from agent.tools import tool
from gateway.ask import UnreadableAsk, load_ask
from gateway.ids import document
from gateway.session import UnreadableRecord, load_run, load_session
from tests.support.office import Office, config, first_calls, office
from tests.support.valkey import Valkey

PAID: list[int] = []


def agent(*, tightened: bool = False, without: bool = False) -> Agent:
    @tool(ask="Refund {amount}?", check_in="always")
    async def refund(order: str, amount: int) -> str:
        """Refund an order."""
        PAID.append(amount)
        return f"refunded {amount}"

    @tool(name="refund", ask="Refund {amount}?", check_in="always")
    async def other(order: str, amount: int, reason: str = "") -> str:
        """Refund an order, with a reason."""
        PAID.append(amount)
        return f"refunded {amount}"

    @tool(check_in="always")
    async def unrelated() -> str:
        """Do something else."""
        return ""

    tools = [unrelated] if without else [other if tightened else refund]
    return Agent(name="a", model=first_calls(("refund", {"order": "A", "amount": 42})), tools=tools)


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def rewrite(valkey: Valkey, id_: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a stored document behind the gateway's back, at the same version."""
    key = next(k for k in valkey.client.keys("*") if id_.encode() in k and valkey.client.type(k) == b"hash")
    body = json.loads(valkey.client.hget(key, "d"))
    change(body)
    valkey.client.hset(key, "d", json.dumps(body))


def with_amount(action: dict[str, Any], amount: int) -> None:
    """Other arguments under the old digest."""
    action["arguments_json"] = action["arguments_json"].replace("42", str(amount))


def recaptured(action: dict[str, Any], amount: int) -> None:
    """Other arguments with a digest that fits them."""
    made = capture(
        tenant=action["tenant"],
        tool=action["tool"],
        schema_hash=action["schema_hash"],
        arguments={"order": "A", "amount": amount},
    )
    action["arguments_json"], action["digest"] = made.arguments_json, made.digest


def in_run(change: Callable[[dict[str, Any], int], None]) -> Callable[[Valkey, str, str], None]:
    return lambda valkey, run, ask: rewrite(
        valkey, run, lambda b: change(b["state"]["calls"][0]["action"], 9999)
    )


def in_ask(change: Callable[[dict[str, Any], int], None]) -> Callable[[Valkey, str, str], None]:
    return lambda valkey, run, ask: rewrite(valkey, ask, lambda b: change(b["ask"]["action"], 9999))


def both(
    one: Callable[[Valkey, str, str], None], two: Callable[[Valkey, str, str], None]
) -> Callable[[Valkey, str, str], None]:
    def change(valkey: Valkey, run: str, ask: str) -> None:
        one(valkey, run, ask)
        two(valkey, run, ask)

    return change


def forged_decision(valkey: Valkey, run: str, ask: str) -> None:
    """A yes that nobody gave, for other arguments, under a seal that was copied."""

    def change(body: dict[str, Any]) -> None:
        recaptured(body["ask"]["action"], 9999)
        body["decided"]["digest"] = body["ask"]["action"]["digest"]

    rewrite(valkey, ask, change)
    in_run(recaptured)(valkey, run, ask)


def another_decider(valkey: Valkey, run: str, ask: str) -> None:
    rewrite(valkey, ask, lambda body: body["decided"]["decision"].update(by="bob"))


def no_seal(valkey: Valkey, run: str, ask: str) -> None:
    rewrite(valkey, ask, lambda body: body["decided"].update(seal=""))


AFTER_THE_DECISION = {
    "arguments in the run": in_run(with_amount),
    "arguments in the run, new digest": in_run(recaptured),
    "arguments in the ask": in_ask(with_amount),
    "arguments in the ask, new digest": in_ask(recaptured),
    "arguments in both": both(in_run(with_amount), in_ask(with_amount)),
    "arguments in both, new digests": both(in_run(recaptured), in_ask(recaptured)),
    "both and the decision's digest": forged_decision,
    "the decider": another_decider,
    "no seal": no_seal,
}


async def decided_and_unclaimed(desk: Office, run: str) -> str:
    """Bring a run to where a yes is stored and nobody has acted on it."""
    (ask,) = await desk.asks(run)  # type: ignore[arg-type]
    await desk.decide(ask, Approved(by="ann"))
    return ask.id


@pytest.mark.parametrize("change", AFTER_THE_DECISION.values(), ids=AFTER_THE_DECISION.keys())
async def test_what_was_changed_in_the_store_does_not_run(
    valkey: Valkey, tmp_path: Path, change: Callable[[Valkey, str, str], None]
) -> None:
    async with office(valkey.url, config(tmp_path), agent()) as opening:
        received = await opening.say("a")
        await opening.asks(received.run)
        run = str(received.run)
    async with office(valkey.url, config(tmp_path), other_name()) as deciding:  # drives nothing of agent `a`
        ask = await decided_and_unclaimed(deciding, run)
    change(valkey, run, ask)
    async with office(valkey.url, config(tmp_path), agent()) as desk:
        ended = await desk.finished(received.run)
        rows = await desk.rows(received.run)
    assert PAID == []
    assert "Nothing was executed" in ended.state.text
    assert [str(row.kind) for row in rows if str(row.kind) in ("refused", "used", "executed")] == ["refused"]


def other_name() -> Agent:
    return Agent(name="b", model=first_calls(), tools=[])


@pytest.mark.parametrize("options", [{"tightened": True}, {"without": True}], ids=["changed", "removed"])
async def test_a_tool_whose_code_changed_since_the_card_does_not_run(
    valkey: Valkey, tmp_path: Path, options: dict[str, bool]
) -> None:
    async with office(valkey.url, config(tmp_path), agent()) as opening:
        received = await opening.say("a")
        (ask,) = await opening.asks(received.run)
    async with office(valkey.url, config(tmp_path), agent(**options)) as desk:
        await desk.decide(ask, Approved(by="ann"))
        ended = await desk.finished(received.run, FinishReason.END_TURN)
        kinds = await desk.kinds(received.run)
    assert PAID == []
    assert "Nothing was executed (NOT_EXECUTED)" in ended.state.text
    assert "refused" in kinds
    assert "used" not in kinds


POISON = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'{"schema": 99}',
    b"\x80\x04\x95cos\nsystem\n",
    b'{"__class__": "os.system"}',
    b'{"id": 1}',
]


@pytest.mark.parametrize("body", POISON)
def test_a_poisoned_record_is_refused_with_a_clear_error(body: bytes) -> None:
    with pytest.raises(UnreadableAsk):
        load_ask(body)
    for load in (load_run, load_session):
        with pytest.raises(UnreadableRecord):
            load(body)
    with pytest.raises(UnreadableState):
        load_state(body)


async def test_a_record_of_a_newer_version_is_refused_and_kept(valkey: Valkey, tmp_path: Path) -> None:
    async with office(valkey.url, config(tmp_path), agent()) as desk:
        received = await desk.say("a")
        (ask,) = await desk.asks(received.run)
        rewrite(valkey, ask.id, lambda body: body.update(schema=99))
        with pytest.raises(UnreadableAsk, match="upgrade Signoff"):
            await desk.decide(ask, Approved(by="ann"))
        (stored,) = await desk.gateway.connection.store.load([document(received.run)])  # type: ignore[arg-type]
        assert stored is not None
    assert PAID == []
