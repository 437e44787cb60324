"""`signoff journal`: what happened, as the journal has it."""

from __future__ import annotations

import asyncio
import json

import click

from gateway.app import connected
from gateway.cli.running import run, settings
from gateway.config import Config
from gateway.journal_line import line
from gateway.journal_row import as_mapping
from gateway.journal_tail import Entry, Page, last
from gateway.journal_tail import tail as read_on

POLL_SECONDS = 0.5


@click.group()
def journal() -> None:
    """Read the journal."""


@journal.command()
@click.option("--config", "path", type=click.Path(), help="The configuration, signoff.toml unless told.")
@click.option("-n", "--lines", default=20, show_default=True, help="So many of the newest rows.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new rows as they are written.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row.")
def tail(path: str | None, lines: int, *, follow: bool, as_json: bool) -> None:
    """Show the newest rows."""
    run(_tail(settings(path), lines, follow=follow, as_json=as_json))


async def _tail(config: Config, lines: int, *, follow: bool, as_json: bool) -> int:
    async with connected(config, own=False) as connection:
        page = await last(connection.store, lines)
        _print(page, as_json=as_json)
        while follow:
            await asyncio.sleep(POLL_SECONDS)
            page = await read_on(connection.store, page.positions)
            _print(page, as_json=as_json)
    return 0


def _print(page: Page, *, as_json: bool) -> None:
    for entry in page.entries:
        click.echo(_object(entry) if as_json else line(entry))


def _object(entry: Entry) -> str:
    place = {"partition": entry.partition, "number": entry.number, "at_ms": entry.at_ms}
    return json.dumps({**place, **as_mapping(entry.row)}, ensure_ascii=False)
