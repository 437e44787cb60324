"""How a command runs: an event loop, and errors as one line with the exit status of their kind.

Owns the mapping from kinds of errors to exit statuses. No command lets a traceback of ours through.
"""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

import click

from gateway.config import Config, load_or_terminal
from gateway.errors import AlreadyDecided, CallerError, Retryable, SignoffError
from gateway.ids import PersonId

EXAMPLES = {
    "refunds": "agent.examples.refunds:agent",
    "coworker": "agent.examples.coworker:agent",
}
"""Agents that come along, by their short names."""


def run(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command to its exit status."""
    try:
        status = asyncio.run(work)
    except SignoffError as error:
        click.echo(f"signoff: {error}", err=True)
        status = _status(error)
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def settings(path: str | None, *, agents: tuple[str, ...] = ()) -> Config:
    """The configuration: a file, or the terminal's defaults with these agents, or all examples."""
    try:
        return load_or_terminal(
            Path(path) if path else None, login=getpass.getuser(), agents=agents or tuple(EXAMPLES.values())
        )
    except SignoffError as error:
        raise Refused(error) from error


class Refused(click.ClickException):
    """A start that our own rules refuse."""

    def __init__(self, error: SignoffError) -> None:
        super().__init__(str(error))
        vars(self)["exit_code"] = _status(
            error
        )  # click reads it from the instance, but declares it for the class

    def show(self, file: Any = None) -> None:
        click.echo(f"signoff: {self.message}", err=True)


class UnknownPerson(CallerError):
    """Nobody who is configured."""


def whoever_is_here(config: Config) -> PersonId:
    """The configured person whose login this is. Raises UnknownPerson."""
    login = getpass.getuser()
    person = config.people.by_identity("console", login)
    if person is None:
        raise UnknownPerson(
            f"nobody is configured with the console login {login!r}: add it to a person in {config.source}"
        )
    return person.id


def named(config: Config, by: str | None) -> PersonId:
    """A person by id, else whoever is logged in. Raises UnknownPerson."""
    if by is None:
        return whoever_is_here(config)
    if config.people.get(PersonId(by)) is None:
        known = ", ".join(sorted(person.id for person in config.people))
        raise UnknownPerson(f"--by {by}: expected one of {known}")
    return PersonId(by)


def _status(error: SignoffError) -> int:
    match error:
        case CallerError():
            return 2
        case AlreadyDecided():
            return 3
        case Retryable():
            return 75
        case _:
            return 1
