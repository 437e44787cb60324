"""`signoff runs`: what is underway, and stopping it."""

from __future__ import annotations

import secrets

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent.ids import RunId
from gateway.app import Connection, build, connected
from gateway.cli.running import named, run, settings
from gateway.config import Config
from gateway.errors import CallerError
from gateway.ids import document
from gateway.ports import Store
from gateway.queues import ACTIVE_RUNS, RECENT_RUNS, runs_of
from gateway.session import RunRecord, load_run
from gateway.times import clock_time
from gateway.transcripts import Transcripts
from gateway.visible import visible

MOST_LISTED = 1_000
STUCK_MS = 60_000
"""Due for so long and in nobody's hands: no process serves its agent, or none is alive."""


class UnclearRun(CallerError):
    """An id that stands for no run, or for several."""


@click.group()
def runs() -> None:
    """See what is underway, and stop it."""


_config = click.option(
    "--config", "path", type=click.Path(), help="The configuration, signoff.toml unless told."
)


@runs.command("list")
@click.option("--all", "everything", is_flag=True, help="Finished ones, too.")
@_config
def list_(path: str | None, *, everything: bool) -> None:
    """Show the runs that are underway."""
    run(_list(settings(path), everything=everything))


@runs.command()
@click.argument("run_id", metavar="RUN")
@_config
def show(run_id: str, path: str | None) -> None:
    """Show one run and its conversation. RUN may be shortened."""
    run(_show(settings(path), run_id))


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--by", help="Who stops it, if not whoever is logged in.")
@_config
def stop(run_id: str, path: str | None, *, by: str | None) -> None:
    """Stop a run: its asks are withdrawn, what was started is waited for. RUN may be shortened."""
    run(_stop(settings(path), run_id, by))


async def _list(config: Config, *, everything: bool) -> int:
    async with connected(config, own=False) as connection:
        found = await _load(connection.store, ACTIVE_RUNS)
        found += await _load(connection.store, RECENT_RUNS) if everything else []
        now = await connection.store.now_ms()
        stuck = await _stuck(connection.store, found, now)
    if not found:
        click.echo("No run is underway.")
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("run", "agent", "state", "since", "request"):
        table.add_column(column, overflow="fold")
    for each in found:
        since = clock_time(each.started_at_ms, zone=None, now_ms=now)
        state = "stuck: no process serves its agent" if each.state.agent in stuck else _state(each)
        cells = (each.state.run_id, each.state.agent, state, since, visible(each.state.request)[:80])
        table.add_row(*map(Text, cells))
    Console(highlight=False).print(table)
    return 0


async def _show(config: Config, wanted: str) -> int:
    async with connected(config, own=False) as connection:
        found = await _find(connection, wanted)
        said = await Transcripts(connection.store).upto(found.session_id, found.length)
    console = Console(highlight=False)
    console.print(Text(f"{found.state.run_id} · {found.state.agent} · {_state(found)}"))
    for message in said:
        match message.type:
            case "user":
                console.print(Text(f"  {message.author or 'person'}: {visible(message.text)}"))
            case "assistant":
                if message.text:
                    console.print(Text(f"  {found.state.agent}: {visible(message.text)}"))
                for use in message.tool_uses:
                    console.print(Text(f"  calls {use.name}"))
            case "results":
                for result in message.results:
                    console.print(Text(f"  {result.tool} ({result.status}): {visible(result.content)}"))
    for ask in found.asks.values():
        console.print(Text(f"  waits for {ask}: see `signoff asks show {ask}`"))
    return 0


async def _stop(config: Config, wanted: str, by: str | None) -> int:
    async with connected(config, own=False) as connection:
        gateway = build(config, connection, channels={}, agents={})
        found = await _find(connection, wanted)
        person = named(config, by)
        stopped = await gateway.desk.stop(found.state.run_id, person, f"cli:{secrets.token_hex(12)}")
    if stopped.state.finish is not None:
        click.echo(f"{stopped.state.run_id} is over already: {_state(stopped)}.")
    else:
        click.echo(
            f"{stopped.state.run_id} stops: its asks are withdrawn. What a tool has started is waited for."
        )
    return 0


def _state(found: RunRecord) -> str:
    if found.state.finish is not None:
        return f"finished: {found.state.finish}".replace("_", " ")
    waits = {"pending_approval": "waits for approval", "pending_question": "waits for an answer"}
    return waits.get(str(found.state.pause), "waits for input") if found.state.pause else "underway"


async def _load(store: Store, index: str) -> list[RunRecord]:
    members = await store.members(index, low=None, high=None, limit=MOST_LISTED)
    stored = await store.load([document(RunId(member.member)) for member in members])
    return [load_run(each.body) for each in stored if each is not None]


async def _stuck(store: Store, found: list[RunRecord], now: int) -> set[str]:
    """Agents whose work nobody takes."""
    agents = sorted({each.state.agent for each in found if each.state.finish is None})
    depths = await store.queue_depths([runs_of(agent) for agent in agents])
    late = (d.oldest_due_ms is not None and now - d.oldest_due_ms > STUCK_MS for d in depths)
    return {agent for agent, is_late in zip(agents, late, strict=True) if is_late}


async def _find(connection: Connection, wanted: str) -> RunRecord:
    """A run by its id, or by a part of it that only one run has. Raises UnclearRun."""
    known = [*await _load(connection.store, ACTIVE_RUNS), *await _load(connection.store, RECENT_RUNS)]
    found = [each for each in known if wanted.lower() in each.state.run_id.lower()]
    if len(found) != 1:
        raise UnclearRun(f"{wanted}: {len(found)} runs fit, expected one; see `signoff runs list --all`")
    return found[0]
