"""The command line: one file a family of commands, put together here."""

from __future__ import annotations

import click

from gateway.cli.asks import asks
from gateway.cli.bench import bench
from gateway.cli.chat import chat
from gateway.cli.demo import demo
from gateway.cli.init import init
from gateway.cli.journal import journal
from gateway.cli.runs import runs
from gateway.cli.serve import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="signoff")
def cli() -> None:
    """Signoff: a person signs off on the exact action, then it runs, once."""


for command in (serve, chat, demo, asks, runs, journal, init, bench):
    cli.add_command(command)
