"""An agent that refunds orders. Up to 1000 it does so at once; above, a person decides.

    signoff chat refunds

`agent` needs no key: rules read what was typed (`refund_rules.py`). `build(resolve("claude"))` is the same agent on
Claude. What was refunded stands in `.signoff/refunds/ledger.jsonl`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from agent.agent import Agent
from agent.examples.folder import folder
from agent.examples.refund_rules import RULES
from agent.input_request import InputDeclaration, InputField, request_input
from agent.model import Model
from agent.scripted import Scripted
from agent.tools import CheckInContext, tool

SYSTEM = """\
You are a refunds assistant.
Look up an order before you refund it, and say what you found.
If the order is missing, collect the details; if only the amount is unclear, ask.
Refunds go out in USD or EUR, in whole amounts of at most 10000.
Refunds above 1000 are decided by a person; you need not ask for permission in words.
Report the amount that really ran. When a refund was declined, do not ask for the same again.
"""


def refunds_above_1000(arguments: dict[str, JsonValue], context: CheckInContext) -> bool:
    amount = arguments["amount"]
    return isinstance(amount, int) and amount > 1000


@tool
def lookup_order(order_id: Annotated[str, Field(title="Order")]) -> str:
    """Say what was refunded on an order so far."""
    refunded = [
        f"{entry['amount']} {entry['currency']}" for entry in _entries() if entry["order_id"] == order_id
    ]
    return f"order {order_id}: {'refunded ' + ', '.join(refunded) if refunded else 'no refund'} so far"


@tool(ask="Refund {amount} {currency} on order {order_id}?", check_in=refunds_above_1000)
def issue_refund(
    order_id: Annotated[str, Field(title="Order", min_length=1, max_length=40)],
    amount: Annotated[int, Field(title="Amount", ge=1, le=10_000)],
    currency: Annotated[Literal["USD", "EUR"], Field(title="Currency")] = "USD",
    reason: Annotated[str, Field(title="Reason", max_length=500)] = "",
) -> str:
    """Refund an order, in whole units of a currency."""
    entry = {"order_id": order_id, "amount": amount, "currency": currency, "reason": reason}
    with _ledger().open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return f"refunded {amount} {currency} on order {order_id}"


@tool
def collect_refund_details(
    order_id: str | None = None, amount: int | None = None, currency: Literal["USD", "EUR"] | None = None
) -> InputDeclaration:
    """Collect the order and the amount from the person who asked. Pass on what they already said."""
    known: dict[str, JsonValue] = {"order_id": order_id, "amount": amount, "currency": currency}
    return request_input(
        "refund-details",
        "Which order, and how much?",
        [
            InputField("order_id", description="As on the invoice, for example A-1042"),
            InputField("amount", "number", description="A whole amount from 1 to 10000"),
            InputField("currency", enum=("USD", "EUR"), description="USD if left open", required=False),
        ],
        supplied={name: value for name, value in known.items() if value is not None},
    )


def build(model: Model | None = None) -> Agent:
    """The agent on a model; without one, on rules that need no key."""
    return Agent(
        name="refunds",
        model=model or Scripted(RULES, name="scripted-refunds"),
        system=SYSTEM,
        tools=[lookup_order, issue_refund, collect_refund_details],
    )


def _ledger() -> Path:
    return folder("refunds") / "ledger.jsonl"


def _entries() -> list[dict[str, JsonValue]]:
    path = _ledger()
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


agent = build()
