"""An ask and a notice as they look in a terminal, in the order that every surface has.

Owns the looks. Word and symbol carry the meaning, never colour alone; nothing of the agent's is read as markup.
"""

from __future__ import annotations

from datetime import tzinfo

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gateway.ask import Outcome, OutcomeKind
from gateway.notice import RunNotice
from gateway.texts import listed, text
from gateway.times import clock_time
from gateway.view import AskView, FieldView


def ask(view: AskView, *, zone: tzinfo | None, now_ms: int) -> RenderableType:
    """An open ask: the question, who and until when, everything that would run, why, the small print."""
    parts: list[RenderableType] = [_who(view, zone, now_ms), *_asked_by(view), Text("")]
    parts += [_fields(view), *_hidden(view), *_says(view), *_because(view)]
    if view.kind == "outcome_question":
        parts += [Text(""), Text(text("outcome-why"))]
    parts += [Text(""), Text(_small_print(view), style="dim")]
    return Panel(
        Group(*parts), title=Text(f" {view.headline} ", style="bold"), title_align="left", padding=(1, 2)
    )


def decided(view: AskView, *, zone: tzinfo | None, now_ms: int) -> RenderableType:
    """A closed ask: what was decided, by whom, and what changed."""
    lines: list[RenderableType] = [Text(view.status, style="bold")]
    if view.decision is not None:
        by = text(
            "decided-by",
            name=view.decision.by,
            time=clock_time(view.decision.at_ms, zone=zone, now_ms=now_ms),
        )
        said = [by, *view.decision.changes, *([f"“{view.decision.note}”"] if view.decision.note else [])]
        lines.append(Text("   " + " · ".join(said)))
    return Group(*lines)


def outcome(shown: Outcome, *, zone: tzinfo | None, now_ms: int) -> Text:
    """What became of an approved call."""
    time = clock_time(shown.at_ms, zone=zone, now_ms=now_ms)
    match shown.kind:
        case OutcomeKind.RUNNING:
            line = text("running", time=time)
        case OutcomeKind.DONE:
            line = text("done", time=time)
        case OutcomeKind.FAILED:
            line = text("failed", line=shown.line or "see the agent's answer")
        case OutcomeKind.NOT_RUN:
            line = text("not-run", line=shown.line)
        case OutcomeKind.UNKNOWN:
            line = text("unknown")
    return Text(f"   {line}")


def notice(shown: RunNotice) -> RenderableType:
    """The end of a run."""
    return Group(Text(""), Text.assemble((f"{shown.agent}: ", "bold"), shown.line), Text(""))


def _who(view: AskView, zone: tzinfo | None, now_ms: int) -> Text:
    decides = "deciders" if view.kind in ("check_in", "outcome_question") else "answerers"
    parts = [text(decides, names=listed(view.deciders))]
    if view.deadline_ms is not None:
        ends = "deadline" if view.kind == "check_in" else "deadline-question"
        parts.append(text(ends, time=clock_time(view.deadline_ms, zone=zone, now_ms=now_ms)))
    return Text(" · ".join(parts))


def _asked_by(view: AskView) -> list[RenderableType]:
    parts = [text("agent", agent=view.agent)]
    if view.requesters:
        names = listed(view.requesters, word="and")
        asked = (
            text("asked-by-in", name=names, place=view.origin)
            if view.origin
            else text("asked-by", name=names)
        )
        parts.insert(0, asked)
    return [Text(" · ".join(parts))]


def _fields(view: AskView) -> RenderableType:
    if not view.fields and view.tool:
        return Text(text("no-arguments"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for field in view.fields:
        table.add_row(Text(field.label), Text(_value(field)))
    for asked in view.missing:
        table.add_row(Text(asked.id), Text(asked.description or asked.type, style="italic"))
    return table


def _value(field: FieldView) -> str:
    reading = f" ({field.reading})" if field.reading else ""
    before = f"  (was {field.before})" if field.before is not None else ""
    return f"{field.value}{reading}{before}"


def _hidden(view: AskView) -> list[RenderableType]:
    return [Text(text("hidden", names=", ".join(view.hidden)))] if view.hidden else []


def _says(view: AskView) -> list[RenderableType]:
    if not view.intent:
        return []
    quoted = Padding(Text(f"“{view.intent}”", style="italic"), (0, 0, 0, 2))
    return [Text(""), Text(text("agent-says"), style="dim"), quoted]


def _because(view: AskView) -> list[RenderableType]:
    if not view.because:
        return []
    return [
        Text(text("because"), style="dim"),
        *(Padding(Text(f"· {why}"), (0, 0, 0, 2)) for why in view.because),
    ]


def _small_print(view: AskView) -> str:
    if not view.digest:
        return view.ask_id
    return text("small-print", tool=view.tool, digest=view.digest, ask=view.ask_id)
