"""`signoff asks`: what waits for people, and deciding it from a command line (assurance `operator`)."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass

import click
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent.checkin import CheckIn
from agent.decision import (
    Answered,
    AnyDecision,
    Approved,
    Assurance,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    InputReceived,
    RunAgain,
)
from agent.input_request import InputRequest
from gateway.app import Connection, Gateway, build, connected, resolve_agents
from gateway.ask import AskRecord, load_ask
from gateway.cli.running import named, run, settings
from gateway.config import Config
from gateway.desk import Submission
from gateway.errors import CallerError
from gateway.form import FieldError, FormField, field_of, fields_of, read_field
from gateway.ids import AskId, PersonId
from gateway.notice import notice_of
from gateway.ports import DocumentId
from gateway.queues import OPEN_ASKS
from gateway.session import RunRecord, load_run
from gateway.telemetry import configure
from gateway.texts import listed
from gateway.times import clock_time
from gateway.view import AskView, Limits, present
from handlers.console import render
from handlers.submission import Submissions

MOST_LISTED = 10_000
LOOK_SECONDS = 0.05


class UnclearAsk(CallerError):
    """An id that stands for no ask, or for several."""


class BadAnswer(CallerError):
    """An answer that does not fit the ask."""


@click.group()
def asks() -> None:
    """See and decide what waits for people."""


_config = click.option(
    "--config", "path", type=click.Path(), help="The configuration, signoff.toml unless told."
)


@asks.command("list")
@_config
def list_(path: str | None) -> None:
    """Show every open ask, the oldest first."""
    run(_list(settings(path)))


@asks.command()
@click.argument("ask")
@_config
def show(ask: str, path: str | None) -> None:
    """Show one ask with everything that would run. ASK may be shortened."""
    run(_show(settings(path), ask))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was given on the command line."""

    approve: bool
    decline: bool
    edits: tuple[str, ...]
    answer: str | None
    fills: tuple[str, ...]
    cancel: bool
    happened: bool
    run_again: bool
    give_up: bool
    note: str


@asks.command()
@click.argument("ask")
@click.option("--approve", is_flag=True, help="Yes to exactly what is shown.")
@click.option("--decline", is_flag=True, help="No.")
@click.option(
    "--edit", "edits", multiple=True, metavar="FIELD=VALUE", help="Change a field, and approve that."
)
@click.option("--answer", help="Answer a question.")
@click.option(
    "--fill", "fills", multiple=True, metavar="FIELD=VALUE", help="Fill in a field of an input request."
)
@click.option("--cancel", is_flag=True, help="Give an input request up.")
@click.option("--happened", is_flag=True, help="Outcome question: it happened.")
@click.option("--run-again", is_flag=True, help="Outcome question: it did not happen; run it now.")
@click.option("--give-up", is_flag=True, help="Outcome question: stop the run.")
@click.option("--note", default="", help="Why; the agent reads it.")
@click.option("--by", help="Who decides, if not whoever is logged in.")
@click.option("--no-run", is_flag=True, help="Record only; do not carry the run on from here.")
@_config
def decide(ask: str, path: str | None, *, by: str | None, no_run: bool, **given: object) -> None:
    """Decide an ask. Recorded as an operator's decision. ASK may be shortened."""
    configure(sys.stderr, level="ERROR")
    run(_decide(settings(path), ask, Choice(**given), by=by, no_run=no_run))  # pyright: ignore[reportArgumentType]


@asks.command()
@click.argument("ask")
@click.option("--by", help="Who withdraws it, if not whoever is logged in.")
@_config
def withdraw(ask: str, path: str | None, *, by: str | None) -> None:
    """Take back an open ask, or a yes that nothing has used yet."""
    run(_withdraw(settings(path), ask, by))


# --- looking -------------------------------------------------------------------------------------------------------


async def _list(config: Config) -> int:
    async with connected(config, own=False) as connection:
        records = await _open_asks(connection)
        now = await connection.store.now_ms()
    if not records:
        click.echo("Nothing waits for anybody.")
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("ask", "what", "who can decide", "until"):
        table.add_column(column, overflow="fold")
    for view in (present(record, config.people, Limits()) for record in records):
        until = clock_time(view.deadline_ms, zone=None, now_ms=now) if view.deadline_ms else "open-ended"
        table.add_row(Text(view.ask_id), Text(view.headline), Text(listed(view.deciders)), Text(until))
    Console(highlight=False).print(table)
    return 0


async def _show(config: Config, wanted: str) -> int:
    async with connected(config, own=False) as connection:
        view = present(await _find(connection, wanted), config.people, Limits())
        now = await connection.store.now_ms()
    console = Console(highlight=False)
    if view.open:
        console.print(render.ask(view, zone=None, now_ms=now))
    else:
        _print_closed(console, view, now)
    return 0


def _print_closed(console: Console, view: AskView, now: int) -> None:
    console.print(render.decided(view, zone=None, now_ms=now))
    if view.outcome is not None:
        console.print(render.outcome(view.outcome, zone=None, now_ms=now))


async def _open_asks(connection: Connection) -> list[AskRecord]:
    members = await connection.store.members(OPEN_ASKS, low=None, high=None, limit=MOST_LISTED)
    stored = await connection.store.load([DocumentId(member.member) for member in members])
    return [load_ask(document.body) for document in stored if document is not None]


async def _find(connection: Connection, wanted: str) -> AskRecord:
    """An ask by its id, or by a part of it that only one open ask has. Raises UnclearAsk."""
    exact = await _exact(connection, wanted)
    if exact is not None:
        return exact
    found = [record for record in await _open_asks(connection) if wanted.lower() in record.id.lower()]
    if len(found) != 1:
        raise UnclearAsk(f"{wanted}: {len(found)} open asks fit, expected one; see `signoff asks list`")
    return found[0]


async def _exact(connection: Connection, wanted: str) -> AskRecord | None:
    try:
        stored = (await connection.store.load([DocumentId(wanted)]))[0]
    except CallerError:
        return None
    return load_ask(stored.body) if stored is not None and wanted.startswith("a_") else None


# --- deciding ------------------------------------------------------------------------------------------------------


async def _decide(config: Config, wanted: str, choice: Choice, *, by: str | None, no_run: bool) -> int:
    async with connected(config, own=False) as connection:
        agents = resolve_agents(config.agents)
        gateway = build(config, connection, channels={}, agents=agents)
        record = await _find(connection, wanted)
        decision = _decision(record, choice, named(config, by))
        outcome = await Submissions(gateway.desk, config.people).submit(
            Submission(
                ask_id=record.id,
                revision=record.revision,
                person=PersonId(decision.by),
                decision=decision,
                channel="cli",
                operation=f"cli:{secrets.token_hex(12)}",
                digest=record.digest,
            )
        )
        click.echo(outcome.told)
        if not outcome.recorded:
            return 1
        if connection.embedded is None or no_run or record.agent not in agents:
            click.echo("The gateway that serves this agent goes on with it.")
            return 0
        async with gateway.running():
            await _carry_on(config, gateway, record)
    return 0


async def _carry_on(config: Config, gateway: Gateway, record: AskRecord) -> None:
    """Nobody else is alive on this store: take the run to where it rests next, and say where that is."""
    while True:
        stored = (await gateway.connection.store.load([DocumentId(record.run_id)]))[0]
        if stored is None:
            return
        left = load_run(stored.body)
        if left.state.finish is not None:
            asked = [load_ask(s.body) for s in await gateway.connection.store.load(left.asked) if s]
            Console(highlight=False).print(render.notice(notice_of(left, asked, config.people)))
            return
        if left.state.pause is not None and await _all_open(gateway, left):
            click.echo("It asks again: see `signoff asks list`.")
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _all_open(gateway: Gateway, left: RunRecord) -> bool:
    stored = await gateway.connection.store.load(list(left.asks.values()))
    return all(s is not None and load_ask(s.body).open for s in stored)


async def _withdraw(config: Config, wanted: str, by: str | None) -> int:
    async with connected(config, own=False) as connection:
        gateway = build(config, connection, channels={}, agents={})
        record = await _find(connection, wanted)
        recorded = await gateway.desk.withdraw(
            AskId(record.id), named(config, by), f"cli:{secrets.token_hex(12)}"
        )
        now = await connection.store.now_ms()
    _print_closed(Console(highlight=False), present(recorded.record, config.people, Limits()), now)
    return 0


def _decision(record: AskRecord, choice: Choice, by: PersonId) -> AnyDecision:
    """The one answer that was given. Raises BadAnswer."""
    made = [make(record, choice, by) for given, make in _ANSWERS if given(choice)]
    if len(made) != 1:
        raise BadAnswer(
            "say one answer: --approve, --decline, --edit, --answer, --fill, --cancel, --happened, …"
        )
    return made[0]


def _edited(record: AskRecord, choice: Choice, by: PersonId) -> AnyDecision:
    if not isinstance(record.ask, CheckIn):
        raise BadAnswer("--edit: only an action's arguments can be changed")
    fields = {field.name: field for field in fields_of(record.ask)}
    arguments = {**record.ask.action.arguments, **_typed(choice.edits, fields, "--edit")}
    return Approved(by=by, note=choice.note, arguments=arguments, assurance=Assurance.OPERATOR)


def _filled(record: AskRecord, choice: Choice, by: PersonId) -> AnyDecision:
    request = _request(record)
    fields = {asked.id: field_of(asked) for asked in request.fields}
    values = _typed(choice.fills, fields, "--fill")
    return InputReceived(by=by, request_id=request.request_id, values=values, assurance=Assurance.OPERATOR)


def _cancelled(record: AskRecord, choice: Choice, by: PersonId) -> AnyDecision:
    return InputCancelled(by=by, request_id=_request(record).request_id, assurance=Assurance.OPERATOR)


def _request(record: AskRecord) -> InputRequest:
    if not isinstance(record.ask, InputRequest):
        raise BadAnswer("this ask is not an input request")
    return record.ask


def _typed(pairs: tuple[str, ...], fields: dict[str, FormField], option: str) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    for pair in pairs:
        name, equals, typed = pair.partition("=")
        if not equals or name not in fields:
            raise BadAnswer(f"{option} {pair}: expected FIELD=VALUE with one of {', '.join(fields)}")
        try:
            values[name] = read_field(fields[name], typed)
        except FieldError as error:
            raise BadAnswer(f"{option} {name}: {error}") from error
    return values


_OPERATOR = Assurance.OPERATOR
_Make = Callable[[AskRecord, Choice, PersonId], AnyDecision]
_ANSWERS: tuple[tuple[Callable[[Choice], object], _Make], ...] = (
    (lambda c: c.approve, lambda _, c, by: Approved(by=by, note=c.note, assurance=_OPERATOR)),
    (lambda c: c.decline, lambda _, c, by: Declined(by=by, note=c.note, assurance=_OPERATOR)),
    (lambda c: c.edits, _edited),
    (lambda c: c.answer is not None, lambda _, c, by: Answered(by=by, answer=c.answer, assurance=_OPERATOR)),
    (lambda c: c.fills, _filled),
    (lambda c: c.cancel, _cancelled),
    (lambda c: c.happened, lambda _, c, by: Happened(by=by, note=c.note, assurance=_OPERATOR)),
    (lambda c: c.run_again, lambda _, c, by: RunAgain(by=by, note=c.note, assurance=_OPERATOR)),
    (lambda c: c.give_up, lambda _, c, by: GivenUp(by=by, note=c.note, assurance=_OPERATOR)),
)
