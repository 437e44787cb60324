"""The work that everybody does: one refund that needs a person's yes, proposed by a model that answers at once.

Owns the texts and sizes, so that all contestants store and show the same. Knows no contestant.
"""

from __future__ import annotations

from collections.abc import Iterator

REQUEST = "Refund order A-1042, it arrived broken"
TOOL = "refund"
ORDER, AMOUNT = "A-1042", 4200
DONE = "The refund is made."
APPROVER = "ann"

QUESTION = "Where is my parcel? It was announced for Tuesday, and nobody has rung at my door since then. "
ANSWER = (
    "The carrier scanned it in the depot this morning and has it on today's tour. It should be with you before six."
    " If nobody is in, it goes to the shop at the corner."
)


def refunded(order: str, amount: int) -> str:
    """What the tool does: nothing, so that nothing but the machinery is measured."""
    return f"refunded {amount} on {order}"


def earlier(count: int) -> Iterator[tuple[bool, str]]:
    """A conversation that was there before: whether the user said it, and the text."""
    for n in range(count):
        yield (True, f"{QUESTION}({n})") if n % 2 == 0 else (False, f"{ANSWER} ({n})")
