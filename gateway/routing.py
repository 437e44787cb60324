"""Which route an ask takes: where it is shown, who may decide it, until when.

Owns the routes and the choice among them. Pure. Reads no configuration (`config.py` makes the routes) and does not know
what a channel is, only how it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from pydantic import JsonValue

from agent.approval import Staleness
from agent.checkin import AnyAsk, CheckIn, OutcomeQuestion, ask_tool
from gateway.conditions import Always, Condition, holds
from gateway.errors import Terminal
from gateway.queues import LIVE_CHANNELS
from gateway.session import Origin

Place = tuple[str, str]
"""A channel, and a target in it; "" is the channel's own choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which asks a route takes. `*` stands for any characters but `/`."""

    tool: str = "*"
    agent: str = "*"
    when: Condition = field(default_factory=Always)

    def takes(self, agent: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        return _like(self.agent, agent) and _like(self.tool, tool) and holds(self.when, arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an ask goes. A route without `match` takes whatever no other took."""

    name: str
    channels: tuple[Place, ...]
    approvers: tuple[str, ...]
    expire_after_ms: int
    match: Match | None = None
    confirm: bool = True
    """Whether a yes is confirmed before it counts."""
    brief: bool = False
    """Whether a notification keeps the details to itself, for lock screens."""
    staleness: Staleness = field(default_factory=Staleness)
    """When an approval that nothing used yet is too old to act on."""

    def targets(self, origin: Origin) -> tuple[Place, ...]:
        """Where a run from there shows its asks. A live channel shows them to whoever is talking to the agent."""
        return tuple(dict.fromkeys(_target(place, origin) for place in self.channels))


class NoDefaultRoute(Terminal):
    """Some asks would go nowhere. The start stops here."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"routes: expected exactly one route without match, as the last; got {problem}")


class Routes:
    """All routes, in the order in which they were declared; the last takes what the others left.

    Raises NoDefaultRoute.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)
        open_ended = [route.name for route in self._routes if route.match is None]
        if not open_ended:
            raise NoDefaultRoute("none: add one, so that no ask goes nowhere")
        if len(open_ended) > 1 or self._routes[-1].match is not None:
            raise NoDefaultRoute(
                f"{', '.join(map(repr, open_ended))}, where later routes would never be reached"
            )

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    @property
    def default(self) -> Route:
        return self._routes[-1]

    def choose(self, *, agent: str, ask: AnyAsk) -> Route:
        """The first declared route that takes it.

        A question's tool is `ask_user`, an input request's the collecting tool, both without arguments: a condition on
        arguments never holds for them, and unless a route names the tool or the agent they take the default.
        """
        tool, arguments = ask_tool(ask), _arguments(ask)
        return next(
            (route for route in self if route.match and route.match.takes(agent, tool, arguments)),
            self.default,
        )


def _arguments(ask: AnyAsk) -> Mapping[str, JsonValue]:
    return ask.action.arguments if isinstance(ask, CheckIn | OutcomeQuestion) else {}


def _target(place: Place, origin: Origin) -> Place:
    channel, target = place
    follows = channel in LIVE_CHANNELS and not target and origin.channel == channel
    return (channel, origin.target) if follows else place


def _like(pattern: str, name: str) -> bool:
    return _pattern(pattern).fullmatch(name) is not None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(re.escape(part) for part in pattern.split("*")))
