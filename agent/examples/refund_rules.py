"""The rules of the refunds agent that needs no key: what it says and calls, from what people really wrote.

Owns the conversation about a refund. Reads the transcript alone; the tools stand in `refunds.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from agent.examples.wish import Wish, read_wish, read_wishes, wants_refund
from agent.examples.wording import amount_read, editor, not_done
from agent.messages import ResultStatus, ToolResult
from agent.scripted import Conversation, Exchange, Outcome, Piece, Rule, call, otherwise, say

HELP = (
    "I refund orders. Tell me the order and the amount, for example: "
    "Refund 5000 USD on order A-1042, it arrived broken."
)
THANKS = "You are welcome."
TRY_ANOTHER = "Name another amount, and I ask again."
NO_AMOUNT = "Not done. I found no amount in that. " + HELP
MAX_OPTIONS = 5
ONLY_USD_EUR = "Not done. Refunds go out in USD or EUR: name the amount in one of them."

_ABOUT = {
    "ask_user": "the amount",
    "collect_refund_details": "the details of the refund",
    "lookup_order": "the look-up of the order",
}
_ASKS_STATUS = re.compile(r"\s*(?:was|were|has|have|did|is|status|check|look up|show|what)\b", re.IGNORECASE)
_THANKS = re.compile(r"\s*(?:thanks|thank you|thx|cheers|great|perfect|danke|merci|谢谢)\b", re.IGNORECASE)
_REFUNDED = re.compile(r"refunded (?P<amount>\d+) (?P<currency>\w+) on order (?P<order>\S+)")


def report(conversation: Conversation) -> Piece | None:
    """Refunds came back: say of each what really ran."""
    lines = [_report_one(outcome) for outcome in conversation.news if outcome.use.name == "issue_refund"]
    return say("\n".join(lines)) if lines else None


def give_up(conversation: Conversation) -> Piece | None:
    """A question, a form or a look-up brought nothing to go on with."""
    lost = [outcome for outcome in conversation.news if not outcome.result.ok]
    lines = [not_done(each.result, _ABOUT.get(each.use.name, "it")) for each in lost]
    return say("\n".join(dict.fromkeys(lines))) if lines else None


def status(conversation: Conversation) -> Piece | None:
    """“Was A-1042 refunded?”"""
    wish = read_wish(conversation.said)
    if not wish.order_id or wish.amounts or not _ASKS_STATUS.match(conversation.said):
        return None
    found = conversation.now.of("lookup_order")
    return say(_sentence(found[-1].result.content)) if found else call("lookup_order", order_id=wish.order_id)


def refund(conversation: Conversation) -> Piece | Sequence[Piece] | None:
    """A refund is wanted: find out what is missing, look the order up, then ask for it."""
    wishes = _wanted(conversation)
    if not wishes:
        return None
    if any(wish.currency not in ("", "USD", "EUR") for wish in wishes):
        return say(ONLY_USD_EUR)
    if len(wishes) == 1 and (wishes[0].amount is None or not wishes[0].order_id):
        return _ask_for_missing(wishes[0], conversation.now)
    looked_up = {str(found.use.arguments["order_id"]): found for found in conversation.now.of("lookup_order")}
    unseen = [wish.order_id for wish in wishes if wish.order_id not in looked_up]
    if unseen:
        return [call("lookup_order", order_id=order_id) for order_id in dict.fromkeys(unseen)]
    intent = " ".join(_intent(wish, looked_up[wish.order_id].result) for wish in wishes)
    return [say(intent), *map(_issue, wishes)]


def thanks(conversation: Conversation) -> Piece | None:
    return say(THANKS) if _THANKS.match(conversation.said) else None


RULES: tuple[Rule, ...] = (report, give_up, status, refund, thanks, otherwise(HELP))


# --- what is wanted ---------------------------------------------------------------------------------------------


def _wanted(conversation: Conversation) -> tuple[Wish, ...]:
    """The refunds that this message asks for, completed by earlier messages and by answers to our questions."""
    wish, *others = read_wishes(conversation.said)
    if others:
        return (wish, *others)
    earlier = _earlier(conversation, wish)
    if not (wish.order_id or wants_refund(conversation.said) or (earlier and wish.amounts)):
        return ()
    wish = wish.or_else(earlier or Wish())
    for answer in _answers(conversation.now):
        wish = answer.or_else(wish)
    return (wish,)


def _earlier(conversation: Conversation, wish: Wish) -> Wish | None:
    """What the messages before told of the same refund, as long as it was not made."""
    found: Wish | None = None
    for number, exchange in enumerate(conversation.exchanges()):
        if number == 0:
            continue
        before = _told(exchange)
        made = any(outcome.result.ok for outcome in exchange.of("issue_refund"))
        if (
            made
            or number > 4
            or before is None
            or (wish.order_id and before.order_id not in ("", wish.order_id))
        ):
            break
        found = (found or Wish()).or_else(before)
    return found


def _told(exchange: Exchange) -> Wish | None:
    """The refund that an earlier message was about. An amount that somebody said no to is not taken up again."""
    wish = read_wish(exchange.said)
    if not (wish.order_id or wish.amounts or wants_refund(exchange.said)):
        return None
    for answer in _answers(exchange):
        wish = answer.or_else(wish)
    refused = bool(exchange.of("issue_refund"))
    return Wish(wish.order_id, () if refused else wish.amounts, wish.currency, wish.reason)


def _answers(exchange: Exchange) -> Iterator[Wish]:
    for outcome in exchange.outcomes:
        if outcome.use.name == "ask_user" and outcome.result.ok:
            yield read_wish(outcome.result.content)
        elif outcome.use.name == "collect_refund_details" and outcome.result.ok:
            yield _from_form(outcome.result)


def _from_form(result: ToolResult) -> Wish:
    values: dict[str, Any] = json.loads(result.content)["values"]
    order_id = str(values.get("order_id", ""))
    typed = read_wish(f"order {order_id}, {values.get('amount', '')} {values.get('currency', '')}")
    return typed if typed.order_id else Wish(order_id.strip(), typed.amounts, typed.currency)


def _ask_for_missing(wish: Wish, now: Exchange) -> Piece:
    """An order is data, which a form collects; among amounts somebody chooses, which is a question."""
    if not wish.order_id:
        known = {"amount": wish.amount, "currency": wish.currency or None}
        supplied = {name: value for name, value in known.items() if value is not None}
        return call("collect_refund_details", **supplied)
    asked = len(now.of("ask_user"))
    if asked > 1 or (asked and not wish.amounts):
        return say(NO_AMOUNT)
    question = f"How much do you want refunded on order {wish.order_id}?"
    if not wish.amounts:
        return call("ask_user", question=question)
    return call(
        "ask_user",
        question=question,
        options=[f"{each} {wish.currency or 'USD'}" for each in wish.amounts[:MAX_OPTIONS]],
    )


# --- what is said and called ------------------------------------------------------------------------------------


def _issue(wish: Wish) -> Piece:
    return call(
        "issue_refund",
        order_id=wish.order_id,
        amount=wish.amount,
        currency=wish.currency or "USD",
        reason=wish.reason,
    )


def _intent(wish: Wish, found: ToolResult) -> str:
    why = f", because: {wish.reason}" if wish.reason else ""
    asked = f"Asked to refund {wish.amount} {wish.currency or 'USD'} on order {wish.order_id}{why}."
    return f"{asked} {_sentence(found.content)}"


def _report_one(outcome: Outcome) -> str:
    result, asked = outcome.result, outcome.use.arguments
    what = f"{amount_read(int(str(asked['amount'])))} {asked['currency']} on order {asked['order_id']}"
    if not result.ok:
        offer = f" {TRY_ANOTHER}" if result.status is ResultStatus.DECLINED else ""
        return not_done(result, f"the refund of {what}") + offer
    ran = _REFUNDED.search(result.content)
    if ran is None:
        return f"Done. A person confirmed the refund of {what}."
    done = f"Done. Refunded {amount_read(int(ran['amount']))} {ran['currency']} on order {ran['order']}."
    return " ".join([done, *_changes(editor(result), asked, ran)])


def _changes(by: str, asked: dict[str, Any], ran: re.Match[str]) -> Iterator[str]:
    """Who changed what, of the things we named."""
    names = {"amount": "amount", "currency": "currency", "order_id": "order"}
    changed = [
        f"the {names[each]} from {asked[each]}"
        for each in names
        if by and str(asked[each]) != ran[names[each]]
    ]
    if changed:
        yield f"{by} changed {' and '.join(changed)}."
    elif by:
        yield f"{by} changed the reason."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
