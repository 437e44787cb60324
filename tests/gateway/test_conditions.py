"""Conditions: what each op means, what is refused, and that evaluating never raises."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gateway.conditions import MAX_DEPTH, InvalidCondition, holds, parse_condition

OPS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "contains")
VALUE_OF: dict[str, Any] = {"in": ["EUR", "USD"], "gt": 1, "gte": 1, "lt": 1, "lte": 1}

scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def judge(field: str, op: str, value: object, **arguments: Any) -> bool:
    return holds(parse_condition({"field": field, "op": op, "value": value}), arguments)


class TestOps:
    @pytest.mark.parametrize(
        ("op", "found", "value", "expected"),
        [
            ("eq", 1000, 1000, True),
            ("eq", 1000, 1000.0, True),
            ("eq", "a", "A", False),
            ("eq", [1, {"a": True}], [1, {"a": True}], True),
            ("eq", [1, {"a": True}], [1, {"a": 1}], False),
            ("eq", [1, None], [1, None], True),
            ("ne", 1000, 999, True),
            ("ne", 1000, 1000.0, False),
            ("gt", 1001, 1000, True),
            ("gt", 1000, 1000, False),
            ("gt", "b", "a", True),
            ("gte", 1000, 1000, True),
            ("lt", -0.5, 0, True),
            ("lte", 0, 0.0, True),
            ("in", "USD", ["EUR", "USD"], True),
            ("in", "GBP", ["EUR", "USD"], False),
            ("in", 1, [True, "1"], False),
            ("contains", "arrived broken", "broken", True),
            ("contains", ["a", "b"], "b", True),
            ("contains", ["1", True], 1, False),
            ("contains", {"a": 1}, "a", False),
        ],
    )
    def test_say_what_they_say(self, op: str, found: JsonValue, value: JsonValue, expected: bool):
        assert judge("x", op, value, x=found) is expected

    @pytest.mark.parametrize("op", OPS)
    def test_a_missing_or_null_field_is_false_for_every_op(self, op: str):
        value = VALUE_OF.get(op, "USD")
        assert not judge("x", op, value)
        assert not judge("x", op, value, x=None)
        assert not judge("x.y", op, value, x=None)
        assert not judge("x.y", op, value, x="text")
        assert not judge("x.3", op, value, x=["a"])

    @pytest.mark.parametrize(
        ("op", "found", "value"),
        [
            ("eq", True, 1),
            ("eq", 0, False),
            ("ne", True, 1),
            ("ne", "1", 1),
            ("ne", [1], 1),
            ("gt", "1001", 1000),
            ("gt", True, 0),
            ("lt", False, 1),
            ("contains", "1", 1),
            ("contains", 11, 1),
        ],
    )
    def test_another_type_is_false_for_every_op(self, op: str, found: JsonValue, value: JsonValue):
        assert not judge("x", op, value, x=found)


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("payment.amount", 5),
            ("items.0.price", 1),
            ("items.1.price", 2),
            ("by_year.2026", 7),
        ],
    )
    def test_lead_through_tables_and_lists(self, path: str, expected: int):
        arguments: dict[str, JsonValue] = {
            "payment": {"amount": 5},
            "items": [{"price": 1}, {"price": 2}],
            "by_year": {"2026": 7},
        }
        assert judge(path, "eq", expected, **arguments)

    @pytest.mark.parametrize("step", ["-1", "+0", "00", "01", "٠", "0x0", "2", "first", "9" * 400])
    def test_only_a_plain_index_is_a_step_into_a_list(self, step: str):
        assert not judge(f"items.{step}", "eq", "a", items=["a", "a"])

    def test_no_attribute_of_an_object_is_a_step(self):
        assert not judge("x.__class__", "ne", "anything", x="text")


class TestCombinations:
    BIG: ClassVar = {"field": "amount", "op": "gt", "value": 1000}
    ABROAD: ClassVar = {"field": "currency", "op": "ne", "value": "EUR"}

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ({"all": [BIG, ABROAD]}, False),
            ({"any": [BIG, ABROAD]}, True),
            ({"all": [BIG, {"any": [ABROAD, BIG]}]}, True),
            ({"any": [{"all": [ABROAD]}, {"all": [ABROAD, BIG]}]}, False),
        ],
    )
    def test_all_and_any(self, condition: object, expected: bool):
        assert holds(parse_condition(condition), {"amount": 5000, "currency": "EUR"}) is expected


class TestRefusals:
    @pytest.mark.parametrize(
        ("given_", "place", "expected"),
        [
            ("amount > 1000", "when", "expected a table"),
            ({}, "when", "expected the keys field, op and value"),
            ({"field": "x", "op": "eq"}, "when", "got field, op"),
            ({"field": "x", "op": "eq", "value": 1, "note": ""}, "when", "expected the keys"),
            ({"all": [], "any": []}, "when", "expected the keys"),
            ({"all": []}, "when.all", "at least one condition"),
            ({"all": {"field": "x"}}, "when.all", "a list"),
            ({"any": [{"field": "x", "op": "matches", "value": "^a"}]}, "when.any[0].op", "one of eq, ne"),
            ({"field": "x", "op": ["eq"], "value": 1}, "when.op", "one of eq"),
            ({"field": "", "op": "eq", "value": 1}, "when.field", "a path"),
            ({"field": "a..b", "op": "eq", "value": 1}, "when.field", "a path"),
            ({"field": 3, "op": "eq", "value": 1}, "when.field", "a path"),
            ({"field": "x", "op": "eq", "value": None}, "when.value", "eq takes"),
            ({"field": "x", "op": "eq", "value": float("nan")}, "when.value", "eq takes"),
            ({"field": "x", "op": "gt", "value": True}, "when.value", "a number or a text"),
            ({"field": "x", "op": "in", "value": "USD"}, "when.value", "a list"),
            ({"field": "x", "op": "in", "value": []}, "when.value", "at least one"),
        ],
    )
    def test_name_the_place_and_what_is_expected(self, given_: object, place: str, expected: str):
        with pytest.raises(InvalidCondition) as refusal:
            parse_condition(given_)
        assert refusal.value.path == place
        assert expected in refusal.value.problem

    def test_nesting_is_bounded(self):
        condition: object = TestCombinations.BIG
        for _ in range(MAX_DEPTH + 1):
            condition = {"all": [condition]}
        with pytest.raises(InvalidCondition, match="at most 32 levels"):
            parse_condition(condition)


class TestAnyInput:
    @given(found=json_values, value=scalars, op=st.sampled_from(OPS))
    def test_comparing_never_raises_and_answers_yes_or_no(self, found: JsonValue, value: Any, op: str):
        try:
            condition = parse_condition({"field": "x", "op": op, "value": [value] if op == "in" else value})
        except InvalidCondition:
            return
        assert holds(condition, {"x": found}) in (True, False)

    @given(found=scalars, value=scalars)
    def test_eq_and_ne_are_opposites_for_one_type_and_both_false_for_two(self, found: Any, value: Any):
        same_type = isinstance(found, bool) == isinstance(value, bool) and (
            isinstance(found, str) == isinstance(value, str)
        )
        finite = all(
            not isinstance(x, float) or x not in (float("inf"), float("-inf")) for x in (found, value)
        )
        if not finite:
            return
        eq, ne = judge("x", "eq", value, x=found), judge("x", "ne", value, x=found)
        assert (eq != ne) is same_type, f"{found!r} and {value!r}: eq {eq}, ne {ne}"

    @given(found=json_values, path=st.text(alphabet="ab01.", min_size=1, max_size=8))
    def test_no_path_raises(self, found: JsonValue, path: str):
        try:
            condition = parse_condition({"field": path, "op": "ne", "value": "x"})
        except InvalidCondition:
            return
        assert holds(condition, {"a": found, "b": [found]}) in (True, False)

    @given(given_=json_values)
    def test_reading_refuses_or_accepts_and_nothing_else(self, given_: JsonValue):
        try:
            condition = parse_condition(given_)
        except InvalidCondition:
            return
        holds(condition, {})
