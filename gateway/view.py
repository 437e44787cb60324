"""What a surface may show of an ask: everything, or no Approve.

Owns `AskView`, the channel-neutral picture, and its completeness. Agent's and people's texts in it are visible
characters only; redacted values are marked. Pure: record in, view out. A channel renders it and adds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, cast

from pydantic import JsonValue

from agent.checkin import CheckIn, OutcomeQuestion, Question
from agent.decision import Approved
from agent.input_request import InputField, InputRequest
from agent.redaction import REDACTED, redact
from gateway.ask import AskRecord, AskState, Outcome
from gateway.ids import AskId, PersonId
from gateway.texts import text
from gateway.visible import visible

MOST_REASONS = 3
LONGEST_REASON = 200


class Names(Protocol):
    """How people are called."""

    def names(self, ids: Sequence[PersonId]) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one rendering can hold, in fields and in characters."""

    fields: int = 10_000
    value: int = 1_000_000
    total: int = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One argument. `value` is what would run, in visible characters; `before` what the agent had asked for."""

    name: str
    label: str
    value: str
    reading: str = ""
    redacted: bool = False
    before: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """Who closed the ask, when and how."""

    by: str
    at_ms: int
    note: str = ""
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskView:
    """The picture of one ask at one moment."""

    ask_id: AskId
    kind: str
    state: AskState
    revision: int
    headline: str
    action: str
    deciders: tuple[str, ...]
    deadline_ms: int | None
    requesters: tuple[str, ...]
    origin: str
    agent: str
    tool: str
    digest: str
    fields: tuple[FieldView, ...]
    hidden: tuple[str, ...]
    intent: str
    because: tuple[str, ...]
    options: tuple[str, ...]
    missing: tuple[InputField, ...]
    safe: bool
    status: str
    decision: DecisionView | None
    outcome: Outcome | None
    complete: bool
    """Whether all of it can be shown; if not, there must be no Approve here."""

    @property
    def open(self) -> bool:
        return self.state is AskState.OPEN


def present(record: AskRecord, names: Names, limits: Limits) -> AskView:
    """An ask as it may be shown now."""
    fields = _fields(record)
    headline, action = _sentences(record)
    ask = record.ask
    return AskView(
        ask_id=record.id,
        kind=ask.kind,
        state=record.state,
        revision=record.revision,
        headline=headline,
        action=action,
        deciders=names.names([PersonId(reference) for reference in record.approvers]),
        deadline_ms=record.deadline_ms,
        requesters=names.names(record.requesters),
        origin=visible(record.origin),
        agent=record.agent,
        tool=record.action.tool if record.action else "",
        digest=record.action.short_digest if record.action else "",
        fields=fields,
        hidden=tuple(field.label for field in fields if field.redacted),
        intent=visible(ask.intent) if isinstance(ask, CheckIn | Question) else "",
        because=_because(ask) if isinstance(ask, CheckIn) else (),
        options=tuple(map(visible, ask.options)) if isinstance(ask, Question) else (),
        missing=_missing(ask) if isinstance(ask, InputRequest) else (),
        safe=ask.safe if isinstance(ask, OutcomeQuestion) else False,
        status=_status(record, names, action),
        decision=_decision(record, names),
        outcome=record.outcome,
        complete=_fits(fields, limits),
    )


def fingerprint(view: object) -> str:
    """Equal for views that look the same."""
    return sha256(repr(view).encode()).hexdigest()[:16]


# --- what would run ------------------------------------------------------------------------------------------------


def _fields(record: AskRecord) -> tuple[FieldView, ...]:
    """Every argument, in the schema's order; those the schema does not name come last."""
    action, ask = record.action, record.ask
    if action is None:
        return _values(ask) if isinstance(ask, InputRequest) else ()
    paths = ask.redact if isinstance(ask, CheckIn | OutcomeQuestion) else ()
    schema = ask.schema if isinstance(ask, CheckIn) else {}
    shown = redact(action.arguments, paths)
    before = _before(record, paths)
    return tuple(
        _field(name, shown[name], action.arguments[name], schema, before) for name in _order(shown, schema)
    )


def _field(
    name: str,
    shown: JsonValue,
    real: JsonValue,
    schema: Mapping[str, JsonValue],
    before: Mapping[str, JsonValue],
) -> FieldView:
    hidden, typed = shown != real, _is_text(name, schema)
    changed = name in before and before[name] != shown
    return FieldView(
        name=name,
        label=label(name, schema),
        value=REDACTED if shown == REDACTED and hidden else written(shown, typed=typed),
        reading=_reading(shown),
        redacted=hidden,
        before=written(before[name], typed=typed) if changed else None,
    )


def _values(request: InputRequest) -> tuple[FieldView, ...]:
    given = ((f, request.values[f.id]) for f in request.fields if f.id in request.values)
    return tuple(FieldView(name=f.id, label=visible(f.id), value=written(value)) for f, value in given)


def _before(record: AskRecord, paths: Sequence[str]) -> Mapping[str, JsonValue]:
    """What the agent had asked for, once somebody changed it."""
    if not record.edits:
        return {}
    return redact(json.loads(record.edits[0].arguments_before), paths)


def _order(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> list[str]:
    declared = [name for name in properties(schema) if name in arguments]
    return declared + sorted(set(arguments) - set(declared))


def properties(schema: Mapping[str, JsonValue]) -> Mapping[str, Mapping[str, JsonValue]]:
    """The fields that a tool's schema declares."""
    return cast("Mapping[str, Mapping[str, JsonValue]]", schema.get("properties") or {})


def label(name: str, schema: Mapping[str, JsonValue]) -> str:
    """A field's title, else its name; never an invented one."""
    title = properties(schema).get(name, {}).get("title")
    return visible(title if isinstance(title, str) and title else name)


def written(value: JsonValue, *, typed: bool = True) -> str:
    """A value as it will run, in visible characters.

    A text that could be taken for something else is shown in quotes: one of our own markers and, where the schema
    does not say that it is a text (not `typed`), a number or anything else that JSON reads.
    """
    match value:
        case None:
            return text("none")
        case "":
            return text("empty-text")
        case str():
            return visible(
                json.dumps(value, ensure_ascii=False) if _mistakable(value, typed=typed) else value
            )
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            return visible(json.dumps(value, ensure_ascii=False, indent=2))


def _mistakable(value: str, *, typed: bool) -> bool:
    if value in (text("none"), text("empty-text"), REDACTED) or value.startswith('"'):
        return True
    return not typed and _is_json(value)


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


def _is_text(name: str, schema: Mapping[str, JsonValue]) -> bool:
    return properties(schema).get(name, {}).get("type") == "string"


def _reading(value: JsonValue) -> str:
    """Five or more digits are easily misread."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) < 10_000:
        return ""
    return f"{value:,}"


def _fits(fields: Sequence[FieldView], limits: Limits) -> bool:
    longest = max((len(field.value) for field in fields), default=0)
    total = sum(len(field.value) + len(field.label) for field in fields)
    return len(fields) <= limits.fields and longest <= limits.value and total <= limits.total


# --- what is asked, and why ----------------------------------------------------------------------------------------


def _sentences(record: AskRecord) -> tuple[str, str]:
    """The headline of an open ask; and what it is about, for a decided one."""
    match record.ask:
        case CheckIn(question=question):
            return visible(question), _statement(question)
        case Question(question=question):
            return visible(question), visible(question)
        case InputRequest(question=question):
            return visible(question), visible(question)
        case OutcomeQuestion(question=question):
            return text("did-this-happen", action=visible(question)), _statement(question)


def _statement(question: str) -> str:
    """What a question is about, for a line that does not ask."""
    return visible(question.removesuffix("?"))


def _because(ask: CheckIn) -> tuple[str, ...]:
    """Why it was asked, then what drove it; three in all."""
    drivers = cast("Sequence[Mapping[str, JsonValue]]", ask.evidence.get("drivers") or ())
    drove = [f"{driver.get('id')}: {driver.get('text')}" for driver in drivers]
    problem = ask.evidence.get("problem")
    told = [*ask.reasons, *([f"evidence {problem}"] if problem else []), *drove]
    return tuple(_short(visible(reason)) for reason in told[:MOST_REASONS])


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"


def _missing(request: InputRequest) -> tuple[InputField, ...]:
    return tuple(f for f in request.fields if f.id not in request.values)


# --- what became of it ---------------------------------------------------------------------------------------------

_ANSWERED = {
    "declined": "declined",
    "answered": "answered",
    "input_received": "input-given",
    "input_cancelled": "input-cancelled",
    "happened": "happened",
    "run_again": "run-again",
    "given_up": "given-up",
}


def _status(record: AskRecord, names: Names, action: str) -> str:
    """The decided card's first line; empty while the ask is open."""
    match record.state:
        case AskState.OPEN:
            return ""
        case AskState.EXPIRED:
            return text("expired", action=action)
        case AskState.WITHDRAWN:
            by = names.names([record.closed_by] if record.closed_by else [])
            return text("withdrawn", action=action, name="".join(by))
        case AskState.SUPERSEDED:
            return text("superseded", because=record.closed_because)
        case AskState.DECIDED:
            return _answered(record, names, action)


def _answered(record: AskRecord, names: Names, action: str) -> str:
    if record.revoked_by is not None:
        return text("revoked", name="".join(names.names([record.revoked_by])))
    decision = record.answer
    if decision is None or isinstance(decision, Approved):
        return text("approved-changed" if record.edits else "approved", action=action)
    return text(_ANSWERED[decision.kind], action=action)


def _decision(record: AskRecord, names: Names) -> DecisionView | None:
    if record.decided is None:
        return None
    decision = record.decided.decision
    return DecisionView(
        by="".join(names.names([PersonId(decision.by)])),
        at_ms=record.decided.at_ms,
        note=visible(getattr(decision, "note", "")),
        changes=tuple(f"{f.label} {f.before} → {f.value}" for f in _fields(record) if f.before is not None),
    )
