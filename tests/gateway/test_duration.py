"""Lengths of time as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.duration import NotADuration, parse_duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1s", 1_000),
        ("30m", 1_800_000),
        ("24h", 86_400_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("0s", 0),
    ],
)
def test_is_read_into_milliseconds(text: str, ms: int):
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "given",
    ["", "5", "h", "1.5h", "-1h", "1 h", "1w", "1H", " 1h", "1h\n", "1h,30m", "٣h", "1234567s",
     5, 5.0, None, True, ["1h"]],
)  # fmt: skip
def test_anything_else_is_refused_with_an_example(given: object):
    with pytest.raises(NotADuration, match=r'"30m", "24h" or "1h30m" \(units d, h, m, s\)'):
        parse_duration(given)


@given(st.lists(st.tuples(st.integers(0, 999_999), st.sampled_from("dhms")), min_size=1, max_size=5))
def test_parts_add_up(parts: list[tuple[int, str]]):
    whole = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration(whole) == sum(parse_duration(f"{number}{unit}") for number, unit in parts)
