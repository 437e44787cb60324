"""`signoff chat`: an agent in this terminal, asking before it acts."""

from __future__ import annotations

import secrets
import sys

import click
from rich.console import Console
from rich.text import Text

from agent.ids import RunId
from gateway.app import Connection, Gateway, build, connected
from gateway.ask import AskRecord, load_ask
from gateway.cli.agents import agents_of
from gateway.cli.running import run, settings, whoever_is_here
from gateway.clock import SystemClock
from gateway.config import Config
from gateway.ids import PersonId
from gateway.ports import DocumentId
from gateway.queues import ACTIVE_RUNS, surfaces_of
from gateway.session import RunRecord, load_run
from gateway.telemetry import configure
from handlers.console.channel import ConsoleChannel
from handlers.console.chat import Chat
from handlers.console.terminal import StandardTerminal
from handlers.submission import Submissions

MOST_RUNS = 1_000


@click.command()
@click.argument("agent", default="refunds")
@click.option("--config", "path", type=click.Path(), help="The configuration, signoff.toml unless told.")
@click.option("--live", is_flag=True, help="Use Claude (needs ANTHROPIC_API_KEY).")
def chat(agent: str, path: str | None, *, live: bool) -> None:
    """Talk to AGENT here. It asks before it acts.

    AGENT is one of signoff.toml, an example (refunds, coworker), or module:attribute.
    """
    configure(sys.stderr, level="ERROR")
    run(_chat(settings(path), agent, live=live))


async def _chat(config: Config, wanted: str, *, live: bool) -> int:
    agents, name = agents_of(config, wanted, live=live)
    person = whoever_is_here(config)
    async with connected(config, own=False) as connection:
        left = await _unfinished(connection, name, person)
        session = left.origin.target if left else f"console:{person}:{secrets.token_hex(6)}"
        channel = ConsoleChannel()
        gateway = build(
            config, connection, channels={surfaces_of("console", session): channel}, agents=agents
        )
        async with gateway.running():
            console = Console(highlight=False)
            talk = chat_of(gateway, channel, agent=name, session=session, person=person, console=console)
            waiting = await _converse(talk, gateway, left)
    if waiting:
        talk.terminal.show(Text(f"It waits. Go on with `signoff chat {wanted}`, or see `signoff asks list`."))
    return 0


def chat_of(
    gateway: Gateway,
    channel: ConsoleChannel,
    *,
    agent: str,
    session: str,
    person: PersonId,
    console: Console,
) -> Chat:
    """A conversation at this terminal."""
    people = gateway.config.people
    return Chat(
        agent=agent,
        session=session,
        person=person,
        terminal=StandardTerminal(console),
        views=channel.views,
        store=gateway.connection.store,
        clock=SystemClock(),
        intake=gateway.intake,
        submissions=Submissions(gateway.desk, people),
        people=people,
        confirm=gateway.config.routes.default.confirm,
    )


async def _converse(talk: Chat, gateway: Gateway, left: RunRecord | None) -> bool:
    """Whether something still waits when the person leaves."""
    if left is None:
        talk.terminal.show(Text(f"{talk.agent} is here. Say what you want done; /quit leaves."))
        return await talk.run()
    talk.terminal.show(Text(f"You left something open with {talk.agent}. It goes on here."))
    asks = await _asks(gateway, left)
    if not await talk.resume(asks, left.state.run_id):
        return True
    return await talk.run()


async def _unfinished(connection: Connection, agent: str, person: PersonId) -> RunRecord | None:
    """This person's latest run with this agent at a terminal, if it is not over."""
    members = await connection.store.members(ACTIVE_RUNS, low=None, high=None, limit=MOST_RUNS)
    stored = await connection.store.load([DocumentId(RunId(member.member)) for member in members])
    runs = [load_run(document.body) for document in stored if document is not None]
    mine = [
        run
        for run in runs
        if run.origin.channel == "console" and run.state.agent == agent and person in run.authors
    ]
    return mine[-1] if mine else None


async def _asks(gateway: Gateway, left: RunRecord) -> list[AskRecord]:
    stored = await gateway.connection.store.load(list(left.asks.values()))
    return [record for s in stored if s is not None and (record := load_ask(s.body)).open]
