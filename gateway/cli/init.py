"""`signoff init`: a commented signoff.toml to start from."""

from __future__ import annotations

import getpass
from pathlib import Path

import click

from gateway.cli.running import Refused
from gateway.errors import SignoffError
from gateway.template import write_template


@click.command()
def init() -> None:
    """Write a commented signoff.toml into this folder. Never overwrites one."""
    try:
        click.echo(write_template(Path(), login=getpass.getuser()))
    except SignoffError as error:
        raise Refused(error) from error
