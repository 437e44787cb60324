"""What is shown to whoever decides: what the call will do, what was read, what drove it, the steps before.

Owns how evidence is put together and its bounds. Knows nothing of asks, of surfaces or of who reads it. Evidence
never stands in the way of asking: when user code for it fails, the person is asked with less, and is told so
(`problem`).

Its cost and size do not grow with the conversation: at most 200 units are listed and at most 600 messages looked
at, from the newest on. `older` counts the rest without reading it: the messages by the transcript's length,
whoever said them, and the units left out of what was read.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, cast

from pydantic import JsonValue

from agent.canonical import copy_faithfully
from agent.messages import AssistantMessage, ResultsMessage, Transcript, UserMessage
from agent.scorer import Scorer

logger = logging.getLogger(__name__)

MAX_UNITS = 200
MAX_SYSTEM_UNITS = 100
"""The system prompt's units come first, but never take more than half of the places."""
MAX_MESSAGES = 3 * MAX_UNITS
MAX_DRIVERS = 20
MAX_STEPS = 20
MAX_CALLS = 64
MAX_ARGUMENTS = 32

VALUE_LIMIT = 60
SUMMARY_LIMIT = 160
DRIVER_LIMIT = 400
TEXT_LIMIT = 500
"""How much of a unit, of a description, or of the choice is looked at."""
OWN_LIMIT = 65_536
"""Characters of JSON that an assembler of one's own may return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRequest:
    """Everything that evidence can be made from. `arguments` are already redacted."""

    tool: str
    description: str
    arguments: dict[str, JsonValue]
    intent: str
    """The model's own words of the same turn. Unverified."""
    system: str
    transcript: Transcript
    iteration: int


Assembler = Callable[[EvidenceRequest], Mapping[str, JsonValue] | Awaitable[Mapping[str, JsonValue]]]
"""Evidence of one's own making. What it returns must be plain JSON as a whole."""


class Unit(NamedTuple):
    """One piece of context. `id` stays the same as the conversation grows."""

    id: str
    channel: str
    text: str


def standard(request: EvidenceRequest, scorer: Scorer) -> dict[str, JsonValue]:
    """What it will do, what the model had read, what drove the choice, and the run's steps before it."""
    units, older = _units(request)
    pack: dict[str, JsonValue] = {
        "will_do": will_do(request.tool, request.description, request.arguments),
        "read": [{"channel": unit.channel, "summary": _cut(unit.text, SUMMARY_LIMIT)} for unit in units],
        "older": older,
        "drivers": [],
        "trail": _trail(request),
    }
    try:
        pack["drivers"] = _drivers(choice_text(request), units, scorer)
    except Exception as error:
        pack["problem"] = _problem("the scorer failed", error)
    return pack


def minimal(request: EvidenceRequest) -> dict[str, JsonValue]:
    """Only what the call will do. Costs nothing, calls nothing."""
    return {"will_do": will_do(request.tool, request.description, request.arguments)}


async def own(request: EvidenceRequest, assembler: Assembler) -> dict[str, JsonValue]:
    """What the assembler returns, as a detached copy; if it fails, or returns what is not JSON, the minimum."""
    try:
        made = assembler(request)
        if inspect.isawaitable(made):
            made = await made
        return _checked(made)
    except Exception as error:
        return {**minimal(request), "problem": _problem("the evidence could not be put together", error)}


def will_do(tool: str, description: str, arguments: Mapping[str, JsonValue]) -> str:
    """A line that says what happens: the tool's description, or its name, and its arguments in short."""
    said = _cut(_collapsed(description), SUMMARY_LIMIT) or tool
    if not arguments:
        return said
    some = islice(arguments.items(), MAX_ARGUMENTS)
    shown = [f"{_cut(name, VALUE_LIMIT)}={_value(value)}" for name, value in some]
    if len(arguments) > MAX_ARGUMENTS:
        shown.append(f"and {len(arguments) - MAX_ARGUMENTS} more")
    return f"{said} — with {', '.join(shown)}"


def choice_text(request: EvidenceRequest) -> str:
    """The choice as a scorer sees it: the tool's name, its description, every value among its arguments."""
    parts = [request.tool, _collapsed(request.description)]
    room = TEXT_LIMIT
    for leaf in _leaves(request.arguments):
        parts.append(leaf[:room])
        room -= len(leaf) + 1
        if room <= 0:
            break
    return " ".join(parts)


# --- units --------------------------------------------------------------------------------------------------


def _units(request: EvidenceRequest) -> tuple[list[Unit], int]:
    """The system prompt's units, then the conversation's newest in its order; and how much is left out."""
    system = _system_units(request.system)
    kept, room = system[:MAX_SYSTEM_UNITS], MAX_UNITS - min(len(system), MAX_SYSTEM_UNITS)
    newest: list[Unit] = []
    unread = len(request.transcript)
    for message in islice(reversed(request.transcript), MAX_MESSAGES):
        if len(newest) >= room:
            break
        newest.extend(_message_units(message, unread))
        unread -= 1
    left_out = len(system) - len(kept) + max(0, len(newest) - room)
    newest = newest[:room]
    newest.reverse()
    return [*kept, *newest], unread + left_out


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


# An agent's system prompt is the same at every call.
@lru_cache(maxsize=64)
def _system_units(system: str) -> tuple[Unit, ...]:
    sentences = (_collapsed(part) for part in _SENTENCE_END.split(system))
    texts = [sentence for sentence in sentences if sentence]
    return tuple(Unit(f"system-{number}", "system", text) for number, text in enumerate(texts, start=1))


def _message_units(message: object, place: int) -> Iterator[Unit]:
    """A message's units, newest first. Ids name its place in the transcript, from 1: no need to count others."""
    if isinstance(message, UserMessage):
        yield Unit(f"task-{place}", "task", _collapsed(message.text))
    elif isinstance(message, ResultsMessage):
        several = len(message.results) > 1
        for number in range(len(message.results), 0, -1):
            result = message.results[number - 1]
            id_ = f"result-{place}-{number}" if several else f"result-{place}"
            yield Unit(id_, "result", f"{result.tool}: {_collapsed(result.content)}")


# --- drivers and trail --------------------------------------------------------------------------------------


def _drivers(choice: str, units: list[Unit], scorer: Scorer) -> list[JsonValue]:
    """The most related units, best first, equals in the order of the conversation. An unrelated one is none."""
    scored = [(_score(scorer(choice, unit.text)), unit) for unit in units]
    related = [pair for pair in scored if pair[0] > 0]
    related.sort(key=lambda pair: -pair[0])
    return [
        {"id": unit.id, "channel": unit.channel, "text": _cut(unit.text, DRIVER_LIMIT), "score": score}
        for score, unit in related[:MAX_DRIVERS]
    ]


def _score(given: float) -> float:
    score = round(float(given), 4)
    if not math.isfinite(score):
        raise ValueError("expected a finite number as a score")
    return score


def _trail(request: EvidenceRequest) -> list[JsonValue]:
    """The steps of this run before the one that is being judged, oldest first."""
    steps: list[JsonValue] = []
    iteration = request.iteration - 1
    after: object = None
    for message in islice(reversed(request.transcript), MAX_MESSAGES):
        if iteration < 1 or len(steps) >= MAX_STEPS:
            break
        if isinstance(message, AssistantMessage) and after is not None:
            steps.append(_step(iteration, message, after))
            iteration -= 1
        after = message
    steps.reverse()
    return steps


def _step(iteration: int, message: AssistantMessage, after: object) -> dict[str, JsonValue]:
    results = after.results if isinstance(after, ResultsMessage) else ()
    ok = {result.tool_use_id: result.ok for result in results}
    uses = message.tool_uses[:MAX_CALLS]
    calls: list[JsonValue] = [{"name": use.name, "ok": ok.get(use.id, False)} for use in uses]
    summary = message.text or f"called {', '.join(use.name for use in uses)}"
    return {"iteration": iteration, "tool_calls": calls, "summary": _cut(_collapsed(summary), SUMMARY_LIMIT)}


# --- text ---------------------------------------------------------------------------------------------------


def _value(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(_collapsed(text), VALUE_LIMIT)


def _collapsed(text: str) -> str:
    """On one line, and no more of it than is ever looked at."""
    if len(text) > TEXT_LIMIT:
        return " ".join(text[:TEXT_LIMIT].split()) + "…"
    return " ".join(text.split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _leaves(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case list() | dict():
            children: Iterable[JsonValue] = value.values() if isinstance(value, dict) else value
            for child in children:
                yield from _leaves(child)


# --- what user code returned --------------------------------------------------------------------------------


def _checked(made: object) -> dict[str, JsonValue]:
    if not isinstance(made, Mapping):
        raise TypeError("expected a mapping")
    copied = copy_faithfully(dict(cast(Mapping[object, object], made)))
    if len(json.dumps(copied, ensure_ascii=False)) > OWN_LIMIT:
        raise ValueError(f"expected at most {OWN_LIMIT} characters of JSON")
    return cast(dict[str, JsonValue], copied)


def _problem(what: str, error: Exception) -> str:
    """Says that something is missing. The error's text may quote what was read, so only its type is told."""
    problem = f"{what} ({type(error).__name__})"
    logger.warning("evidence incomplete", extra={"action": "evidence", "problem": problem})
    return problem
