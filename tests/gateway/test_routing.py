"""Which route an ask takes."""

from __future__ import annotations

from typing import Any

import pytest

from agent.checkin import AnyAsk
from gateway.conditions import parse_condition
from gateway.routing import Match, NoDefaultRoute, Route, Routes
from gateway.session import Origin
from tests.support.asks import check_in, input_request, outcome_question, question


def route(name: str, match: Match | None = None, **parts: Any) -> Route:
    given = {"channels": (("console", ""),), "approvers": ("ann",), "expire_after_ms": 60_000} | parts
    return Route(name=name, match=match, **given)


BIG = parse_condition({"field": "amount", "op": "gt", "value": 1000})
ROUTES = Routes(
    [
        route("large", Match(tool="issue_refund", when=BIG)),
        route("refund tools", Match(tool="*_refund")),
        route("support", Match(agent="support-*")),
        route("default"),
    ]
)


class TestChoose:
    @pytest.mark.parametrize(
        ("agent", "ask", "expected"),
        [
            ("refunds", check_in({"amount": 5000}), "large"),
            ("refunds", check_in({"amount": 1000}), "refund tools"),
            ("refunds", check_in({}), "refund tools"),
            ("refunds", check_in({"amount": True}), "refund tools"),
            ("refunds", outcome_question(), "large"),
            ("refunds", check_in(tool="cancel_refund"), "refund tools"),
            ("refunds", check_in(tool="refund"), "default"),
            ("support-eu", check_in(tool="close_ticket"), "support"),
            ("support-eu", question(), "support"),
            ("refunds", question(), "default"),
            ("refunds", input_request(), "default"),
            ("refunds", input_request("issue_refund"), "refund tools"),
        ],
    )
    def test_the_first_declared_route_that_takes_it(self, agent: str, ask: AnyAsk, expected: str):
        assert ROUTES.choose(agent=agent, ask=ask).name == expected

    @pytest.mark.parametrize(
        ("pattern", "tool", "taken"),
        [
            ("*", "pay", True),
            ("*", "bank/pay", False),
            ("bank/*", "bank/pay", True),
            ("bank/*", "bank/eu/pay", False),
            ("p.y", "pay", False),
            ("pay", "pay\n", False),
            ("", "pay", False),
        ],
    )
    def test_a_star_does_not_cross_a_slash_and_nothing_else_is_special(
        self, pattern: str, tool: str, taken: bool
    ):
        assert Match(tool=pattern).takes("refunds", tool, {}) is taken


class TestDefault:
    def test_is_required(self):
        with pytest.raises(NoDefaultRoute, match="none: add one"):
            Routes([route("large", Match(tool="issue_refund"))])

    def test_no_routes_at_all_are_refused(self):
        with pytest.raises(NoDefaultRoute):
            Routes([])

    @pytest.mark.parametrize(
        "routes",
        [[route("a"), route("b")], [route("a"), route("b", Match(tool="x"))]],
        ids=["two", "not last"],
    )
    def test_nothing_may_stand_behind_it(self, routes: list[Route]):
        with pytest.raises(NoDefaultRoute, match="never be reached"):
            Routes(routes)


class TestTargets:
    def test_a_terminal_without_a_name_is_the_one_that_asks(self):
        assert route("r").targets(Origin(channel="console", target="tty-1")) == (("console", "tty-1"),)

    def test_a_named_one_is_kept(self):
        named = route("r", channels=(("console", "ops"), ("console", "")))
        assert named.targets(Origin(channel="console", target="ops")) == (("console", "ops"),)

    def test_a_run_from_elsewhere_has_no_terminal(self):
        assert route("r").targets(Origin(channel="http")) == (("console", ""),)
