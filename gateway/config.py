"""The configuration as the process uses it: people, routes, limits, addresses; checked as a whole.

Owns what spans several keys (an approver who is nobody, a route that is missing) and the one error that names every
key that is wrong. Reads `signoff.toml` and the environment once, at the start; holds no secret but the store's address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tomllib import TOMLDecodeError, loads
from zoneinfo import ZoneInfo

from pydantic import ValidationError
from pydantic_settings import SettingsError

from agent.approval import Staleness
from gateway.authority import Authority
from gateway.conditions import Always
from gateway.config_error import ConfigError, Problem, explain, misspelt
from gateway.errors import Terminal
from gateway.ids import PersonId
from gateway.people import People, Person
from gateway.routing import Match, NoDefaultRoute, Place, Route, Routes
from gateway.settings import (
    ELSEWHERE,
    MatchSettings,
    PersonSettings,
    RouteSettings,
    Settings,
    StoreSettings,
    WorkerSettings,
    read_file,
)

FILE = "signoff.toml"
TERMINAL_EXPIRE_AFTER = "5m"
"""Somebody at a terminal answers in place, or does not."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the process listens. Port 0 takes any that is free."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """`url` is None for the embedded store. It may hold a password, so it is not shown."""

    url: str | None = field(repr=False)
    replicas: int
    confirm_timeout_ms: int
    allow_unsafe: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    concurrency: int
    lease_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that an operator decided."""

    agents: tuple[str, ...]
    """Import strings: `module:name`."""
    listen: Address
    base_url: str | None
    data_dir: Path
    store: StoreConfig
    worker: WorkerConfig
    people: People
    routes: Routes
    source: Path | None = None
    """The file it was read from."""

    @property
    def embedded(self) -> bool:
        """Whether this process brings its own store."""
        return self.store.url is None

    @property
    def authority(self) -> Authority:
        return Authority(self.people)

    @classmethod
    def for_terminal(cls, login: str, agents: Sequence[str]) -> Config:
        """What `chat` and `demo` use without a file: whoever is logged in decides, at this terminal.

        The environment still counts. Raises ConfigError.
        """
        person = person_id(login)
        route = {
            "name": "terminal",
            "channels": ["console"],
            "approvers": [person],
            "expire_after": TERMINAL_EXPIRE_AFTER,
        }
        defaults = {
            "agents": list(agents),
            "people": {person: {"name": login, "console": login}},
            "routes": [route],
        }
        return _checked(None, defaults)


def person_id(login: str) -> PersonId:
    """What a login name is called in the configuration."""
    return PersonId(re.sub(r"[^a-z0-9._-]+", "-", login.casefold()).strip(".-_")[:64] or "you")


def load(path: Path | None = None) -> Config:
    """Read a file, `signoff.toml` in this folder unless told, and the environment.

    Raises ConfigError, naming each key that is wrong.
    """
    file = path or Path(FILE)
    if not file.is_file():
        raise ConfigError(
            str(file), (Problem("", f"expected a file {file}; got none: run `signoff init` to make one"),)
        )
    return _checked(file, {})


def load_or_terminal(path: Path | None, *, login: str, agents: Sequence[str]) -> Config:
    """The file if there is one, or if it is asked for by name; else the terminal's defaults."""
    if path is not None or Path(FILE).is_file():
        return load(path)
    return Config.for_terminal(login, agents)


def _checked(file: Path | None, defaults: Mapping[str, object]) -> Config:
    where = str(file) if file else "the environment"
    problems = misspelt(os.environ)
    settings = _read(file, defaults, problems)
    config = _build(file, settings, problems) if settings else None
    if config is None or problems:
        raise ConfigError(where, tuple(problems))
    return config


def _read(file: Path | None, defaults: Mapping[str, object], problems: list[Problem]) -> Settings | None:
    try:
        if file is None:
            return Settings(**defaults)  # pyright: ignore[reportArgumentType]  (checked there)
        problems += _in_the_wrong_place(file)
        return read_file(file)
    except ValidationError as error:
        problems += explain(error, os.environ)
    except SettingsError as error:
        problems.append(_not_json(error))
    except TOMLDecodeError as error:
        problems.append(Problem("", f"expected TOML; got a mistake: {error}"))
    except UnicodeDecodeError:
        problems.append(Problem("", "expected a text in UTF-8; got something else"))
    except OSError as error:
        problems.append(Problem("", f"expected a readable file; got: {error.strerror}"))
    return None


def _in_the_wrong_place(file: Path) -> list[Problem]:
    """Settings that must not be in a file, because they may hold a secret."""
    written = loads(file.read_text(encoding="utf-8"))
    return [Problem(key, ELSEWHERE[key]) for key in ("redis_url", "redis_url_file") if key in written]


def _not_json(error: SettingsError) -> Problem:
    named = re.search(r'field "(\w+)"', str(error))
    key = f"SIGNOFF_{named[1].upper()}" if named else "the environment"
    return Problem(key, "expected JSON; got something else: write it in signoff.toml instead")


# --- from what is written to what is used --------------------------------------------------------------------------


def _build(file: Path | None, settings: Settings, problems: list[Problem]) -> Config | None:
    people = _people(settings, problems)
    routes = _routes(settings, Authority(people) if people else None, problems)
    url = _url(settings, problems)
    if people is None or routes is None:
        return None
    home = file.parent if file else Path()
    return Config(
        agents=settings.agents,
        listen=_address(settings.listen),
        base_url=settings.base_url,
        data_dir=(home / settings.data_dir.expanduser()).absolute(),
        store=_store(url, settings.store),
        worker=_worker(settings.worker),
        people=people,
        routes=routes,
        source=file,
    )


def _people(settings: Settings, problems: list[Problem]) -> People | None:
    try:
        return People(_person(id, each) for id, each in settings.people.items())
    except Terminal as error:
        problems.append(Problem("", str(error)))
        return None


def _person(id: str, written: PersonSettings) -> Person:
    return Person(
        id=PersonId(id),
        name=written.name or id,
        zone=ZoneInfo(written.zone) if written.zone else None,
        identities={"console": written.console},
    )


def _routes(settings: Settings, authority: Authority | None, problems: list[Problem]) -> Routes | None:
    made = [_route(place, each) for place, each in enumerate(settings.routes)]
    for place, route in enumerate(made):
        try:
            if authority:
                authority.resolve(route.approvers)
        except Terminal as error:
            problems.append(Problem(f"routes[{place}].approvers", str(error)))
    names = [route.name for route in made]
    if len(set(names)) != len(names):
        problems.append(Problem("routes", "expected a name of its own for each route; got one twice"))
    try:
        return Routes(made)
    except NoDefaultRoute as error:
        problems.append(Problem("", str(error)))
        return None


def _route(place: int, written: RouteSettings) -> Route:
    return Route(
        name=written.name or f"route {place + 1}",
        match=_match(written.match) if written.match else None,
        channels=tuple(map(_place, written.channels)),
        approvers=written.approvers,
        expire_after_ms=written.expire_after,
        confirm=written.confirm,
        brief=written.notification == "brief",
        staleness=Staleness(
            expires_after_ms=written.approvals.expires_after,
            refuse_when_world_moved=written.approvals.refuse_when_world_moved,
        ),
    )


def _match(written: MatchSettings) -> Match:
    return Match(tool=written.tool or "*", agent=written.agent or "*", when=written.when or Always())


def _place(written: str) -> Place:
    channel, _, target = written.partition(":")
    return channel, target


def _url(settings: Settings, problems: list[Problem]) -> str | None:
    if settings.redis_url_file is None:
        return settings.redis_url
    if settings.redis_url is not None:
        problems.append(
            Problem("SIGNOFF_REDIS_URL", "expected it or SIGNOFF_REDIS_URL_FILE; got both: remove one")
        )
        return None
    try:
        url = settings.redis_url_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        url = ""
    if not url:
        expected = "expected a readable file that holds the address of a server; got none, or an empty one"
        problems.append(Problem("SIGNOFF_REDIS_URL_FILE", expected))
    return url


def _address(written: str) -> Address:
    host, _, port = written.rpartition(":")
    return Address(host.strip("[]"), int(port))


def _store(url: str | None, written: StoreSettings) -> StoreConfig:
    return StoreConfig(
        url=url,
        replicas=written.replicas,
        confirm_timeout_ms=written.confirm_timeout,
        allow_unsafe=written.allow_unsafe,
    )


def _worker(written: WorkerSettings) -> WorkerConfig:
    return WorkerConfig(concurrency=written.concurrency, lease_ms=written.lease)
