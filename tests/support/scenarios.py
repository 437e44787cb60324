"""Numbers for scenario tests: which sentence of the contract a test proves. `test_table.py` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def scenario(number: int, sentence: str) -> Callable[[Test], Test]:
    """Mark a test as the proof of a scenario; the sentence is what a reader needs."""
    assert 1 <= number <= 52, f"there is no scenario {number}"
    assert sentence, f"scenario {number} needs its sentence"

    def mark(test: Test) -> Test:
        return test

    return mark
