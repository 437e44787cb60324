"""Reads from a person's own words which refund they want. Pure: text in, wishes out.

Owns the reading of orders, amounts, currencies and reasons. Knows nothing of conversations, tools or models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

READ_LIMIT = 4_000
"""Characters of a message that are read for a refund."""
LONGEST_AMOUNT = 15

_ORDER = re.compile(
    r"\b[A-Z]{1,4}-\d{1,10}\b"  # A-1042
    r"|(?:\border|\bnumber|\bno\.|#|订单|订单号)\s*(?:number|no\.?|nr\.?|#|号)?\s*:?\s*([A-Z]{0,4}-?\d{2,10})\b",
    re.IGNORECASE,
)
_CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "美元": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "欧元": "EUR",
    "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "¥": "JPY", "yen": "JPY", "chf": "CHF", "元": "CNY",
}  # fmt: skip
_MONEY = "|".join(re.escape(word) for word in sorted(_CURRENCIES, key=len, reverse=True))
_AMOUNT = re.compile(
    rf"(?:(?P<before>{_MONEY})\s?)?"
    r"(?<![\w.,-])(?P<whole>\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?!\d)|\d+)(?:[.,](?P<cents>\d{1,2})(?!\d))?"
    rf"(?P<thousand>k\b)?(?:\s?(?P<after>{_MONEY})(?![a-z]))?",
    re.IGNORECASE,
)
# A number before one of these is no amount: "arrived 3 days late", "2 items", "20% off".
_COUNTED = re.compile(
    r"\s?(?:%|st\b|nd\b|rd\b|th\b|x\b|times?\b|(?:business )?days?\b|weeks?\b|months?\b|years?\b|hours?\b|items?\b|"
    r"pieces?\b|photos?\b|o'clock|am\b|pm\b|[:/]\d)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:\bbecause(?: of)?|\bsince|\breason(?: is)?:?|\bas (?=it|they|the)|\s[—–-]\s(?=[^\W\d])|因为"
    r"|,\s*(?=(?:it|they|he|she|the|customer|client|item|parcel|package|was|were|arrived|wrong|broken|damaged)\b))"
    r"\s*(?P<reason>[^.;!?\n。]+)",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"refund|reimburs|money back|give (?:it |that )?back|erstatt|rembours|退款|返金|환불", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"\s+and\s+|;|\n|\balso\b|,(?!\d)(?=[^,]*\b[A-Z]{1,4}-\d{1,10}\b)|(?<=\d),\s+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Wish:
    """A refund as far as a text tells of it. More than one amount is none yet: somebody must choose."""

    order_id: str = ""
    amounts: tuple[int, ...] = ()
    currency: str = ""
    reason: str = ""

    @property
    def amount(self) -> int | None:
        return self.amounts[0] if len(self.amounts) == 1 else None

    def or_else(self, earlier: Wish) -> Wish:
        """This wish, and what an earlier message told where this one tells nothing."""
        return Wish(
            self.order_id or earlier.order_id,
            self.amounts or earlier.amounts,
            self.currency or earlier.currency,
            self.reason or earlier.reason,
        )


def wants_refund(text: str) -> bool:
    return _WANTED.search(text) is not None


def read_wish(text: str) -> Wish:
    """The one refund that a text is about."""
    text = text[:READ_LIMIT]
    amounts, currency = _read_money(text)
    return Wish(_read_order(text), amounts, currency, _read_reason(text))


def read_wishes(text: str) -> tuple[Wish, ...]:
    """All refunds that a text asks for: several when several parts of it name an order and an amount each."""
    parts = [read_wish(part) for part in _CLAUSE.split(text[:READ_LIMIT])]
    complete = [wish for wish in parts if wish.order_id and wish.amount]
    if len({wish.order_id for wish in complete}) > 1:
        return tuple(complete)
    return (read_wish(text),)


def _read_order(text: str) -> str:
    found = _ORDER.search(text)
    return (found[1] or found[0]).upper() if found else ""


def _read_money(text: str) -> tuple[tuple[int, ...], str]:
    """The amounts in whole units, and their currency. With cents, the two whole amounts beside it."""
    found = list(_amounts(_ORDER.sub(" # ", text)))
    marked = [each for each in found if each["before"] or each["after"]]
    chosen = marked or found
    amounts = dict.fromkeys(amount for each in chosen for amount in _whole(each))
    currency = next((each["before"] or each["after"] for each in marked), "")
    return tuple(amounts), _CURRENCIES.get(currency.lower(), "")


def _amounts(text: str) -> Iterator[re.Match[str]]:
    for found in _AMOUNT.finditer(text):
        counted = not (found["before"] or found["after"]) and _COUNTED.match(text, found.end())
        if len(found["whole"]) <= LONGEST_AMOUNT and not counted:
            yield found


def _whole(found: re.Match[str]) -> tuple[int, ...]:
    whole = int(re.sub(r"\D", "", found["whole"]))
    if found["thousand"]:
        return (whole * 1000 + int((found["cents"] or "").ljust(3, "0")),)
    return (whole, whole + 1) if (found["cents"] or "").strip("0") else (whole,)


def _read_reason(text: str) -> str:
    found = _REASON.search(text)
    if found is None or (_read_order(found["reason"]) and _read_money(found["reason"])[0]):
        return ""
    reason = re.sub(
        r"^(?:it|they)(?:'s| is| has| had| have)?\s+", "", found["reason"].strip(" ,"), flags=re.IGNORECASE
    )
    return reason[:1].upper() + reason[1:200]
