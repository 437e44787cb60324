"""`signoff demo`: one run from the request to the end, with the answer given in advance."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from agent.checkin import CheckIn
from agent.decision import Approved, Declined
from agent.messages import ResultsMessage
from agent.run import FinishReason
from gateway.app import Gateway, build, connected
from gateway.ask import OutcomeKind
from gateway.cli.agents import agents_of
from gateway.cli.chat import chat_of
from gateway.cli.running import run, settings, whoever_is_here
from gateway.config import Config
from gateway.form import FieldError, fields_of, read_field
from gateway.ids import PersonId, document
from gateway.journal_line import line
from gateway.journal_tail import last
from gateway.notice import RunNotice
from gateway.queues import surfaces_of
from gateway.session import load_run
from gateway.telemetry import configure
from gateway.transcripts import Transcripts
from gateway.visible import visible
from handlers.console.channel import ConsoleChannel
from handlers.console.scripted import Scripted, Unexpected

MESSAGE = "Refund $5,000 on order A-1042, it arrived broken"
ROWS_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is answered when the agent asks."""

    decline: bool
    note: str
    edits: tuple[str, ...]
    message: str

    @property
    def expects_execution(self) -> bool:
        return not self.decline


@click.command()
@click.option("--approve", is_flag=True, help="Say yes.")
@click.option("--decline", is_flag=True, help="Say no.")
@click.option("--edit", "edits", multiple=True, metavar="FIELD=VALUE", help="Change a field, then approve.")
@click.option("--note", default="", help="What the agent reads with a no.")
@click.option("--agent", "agent", default="refunds", help="Another agent: a name, or module:attribute.")
@click.option("--message", default=MESSAGE, show_default=True, help="What is asked of the agent.")
@click.option("--live", is_flag=True, help="Use Claude (needs ANTHROPIC_API_KEY).")
@click.option("--config", "path", type=click.Path(), help="The configuration, signoff.toml unless told.")
def demo(
    *,
    approve: bool,
    decline: bool,
    edits: tuple[str, ...],
    note: str,
    agent: str,
    message: str,
    live: bool,
    path: str | None,
) -> None:
    """Run the $5,000 refund with the answer given in advance; exits 0 only if it ended as it should."""
    if approve + decline + bool(edits) != 1:
        raise click.UsageError("say what to answer: one of --approve, --decline or --edit FIELD=VALUE")
    configure(sys.stderr, level="ERROR")
    plan = Plan(decline=decline, note=note, edits=edits, message=message)
    run(_demo(settings(path), agent, plan, live=live))


async def _demo(config: Config, wanted: str, plan: Plan, *, live: bool) -> int:
    agents, name = agents_of(config, wanted, live=live)
    person, session = whoever_is_here(config), f"demo:{secrets.token_hex(6)}"
    channel, console = ConsoleChannel(), Console(highlight=False)
    async with connected(config, own=False) as connection:
        gateway = build(
            config, connection, channels={surfaces_of("console", session): channel}, agents=agents
        )
        async with gateway.running():
            talk = Scripted(
                chat=chat_of(gateway, channel, agent=name, session=session, person=person, console=console),
                answer=lambda ask: _answer(plan, person, ask),
            )
            console.print(Text(f"you> {plan.message}"))
            try:
                ended = await talk.see_through(plan.message)
            except Unexpected as error:
                console.print(Text(f"The demo did not end as it should: {error}"))
                return 1
            await _show_answers(gateway, console, ended)
            await _show_journal(gateway, console, ended)
    return _judge(plan, talk, ended, console)


def _answer(plan: Plan, person: PersonId, ask: CheckIn) -> Approved | Declined:
    """The planned decision. Raises Unexpected for an edit that does not fit the action."""
    if plan.decline:
        return Declined(by=person, note=plan.note)
    if not plan.edits:
        return Approved(by=person, note=plan.note)
    arguments: dict[str, JsonValue] = dict(ask.action.arguments)
    fields = {field.name: field for field in fields_of(ask)}
    for edit in plan.edits:
        name, equals, typed = edit.partition("=")
        if not equals or name not in fields:
            raise Unexpected(f"--edit {edit}: expected FIELD=VALUE with one of {', '.join(fields)}")
        try:
            arguments[name] = read_field(fields[name], typed)
        except FieldError as error:
            raise Unexpected(f"--edit {name}: {error}") from error
    return Approved(by=person, note=plan.note, arguments=arguments)


async def _show_answers(gateway: Gateway, console: Console, ended: RunNotice) -> None:
    """What each tool answered, as the model read it."""
    stored = (await gateway.connection.store.load([document(ended.run_id)]))[0]
    if stored is None:
        return
    run = load_run(stored.body)
    console.print(Text("Tools", style="bold"))
    for message in await Transcripts(gateway.connection.store).upto(run.session_id, run.length):
        for result in message.results if isinstance(message, ResultsMessage) else ():
            console.print(Text(f"  {result.tool} ({result.status}): {visible(result.content)}"))


async def _show_journal(gateway: Gateway, console: Console, ended: RunNotice) -> None:
    console.print(Text("Journal", style="bold"))
    page = await last(gateway.connection.store, ROWS_SHOWN * 4)
    for entry in page.entries:
        if entry.row.run_id == ended.run_id:
            console.print(Text(f"  {line(entry)}"), soft_wrap=True)


def _judge(plan: Plan, talk: Scripted, ended: RunNotice, console: Console) -> int:
    """Whether it ended as it should."""
    kinds = [view.outcome.kind for view in talk.closed if view.outcome is not None]
    executed = kinds[-1:] == [OutcomeKind.DONE]
    problem = ""
    if ended.reason is not FinishReason.END_TURN:
        problem = f"the run ended as {ended.reason}"
    elif not talk.closed:
        problem = "the agent did not ask"
    elif executed is not plan.expects_execution:
        problem = "it was executed" if executed else "it was not executed"
    if problem:
        console.print(Text(f"The demo did not end as it should: {problem}."))
        return 1
    return 0
