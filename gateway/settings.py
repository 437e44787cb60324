"""The configuration as it is written: which keys `signoff.toml` and `SIGNOFF_…` may hold, and their forms.

Owns the edge: names, types, bounds, and which source wins (the environment). `config.py` makes of it what the process
uses, and checks what spans several keys. No secret can be written here: `secret.py` reads it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from gateway.conditions import Condition, InvalidCondition, parse_condition
from gateway.duration import parse_duration

PREFIX = "SIGNOFF_"
NESTED = "__"
CHANNELS = ("console",)
"""Channels that a route can name in this version."""
CHANNELS_TO_COME = ("slack", "lark", "email", "webhook")
UNSAFE = ("eviction", "persistence")
"""What a store may lack if the operator says so by name; `gateway/store/checks.py` says what each means."""


def _duration(least: str, most: str) -> BeforeValidator:
    low, high = parse_duration(least), parse_duration(most)

    def read(given: object) -> int:
        length = parse_duration(given)
        if not low <= length <= high:
            raise ValueError(f'a duration from "{least}" to "{most}"')
        return length

    return BeforeValidator(read)


def _split(given: object) -> object:
    """A list, in an environment variable with commas."""
    return [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given


def _agent(given: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", given):
        raise ValueError('module:name, such as "agent.examples.refunds:agent"')
    return given


def _address(given: str) -> str:
    host, colon, port = given.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError('host:port, such as "127.0.0.1:8642" or "[::1]:8642"')
    return given


def _base_url(given: str) -> str:
    url = urlsplit(given)
    bare = not (url.query or url.fragment or url.username or url.password) and url.path in ("", "/")
    if url.scheme not in ("http", "https") or not url.hostname or not bare:
        raise ValueError('an address without a path, such as "https://signoff.example.com"')
    return given.rstrip("/")


def _channel(given: str) -> str:
    channel = given.partition(":")[0]
    if channel in CHANNELS_TO_COME:
        raise ValueError(f"one of {', '.join(CHANNELS)}; {channel} comes in a later version")
    if channel not in CHANNELS or given.endswith(":"):
        raise ValueError(f"one of {', '.join(CHANNELS)}")
    return given


def _visible(given: str) -> str:
    if not given.strip() or not given.isprintable() or given != given.strip():
        raise ValueError("a visible text, without spaces around it")
    return given


def _person(given: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", given):
        raise ValueError("small letters, digits, dots, dashes and underscores, such as [people.alice]")
    return given


def _zone(given: str) -> str:
    try:
        ZoneInfo(given)
    except (KeyError, OSError, ValueError) as error:  # KeyError: the zone is unknown
        raise ValueError('a time zone such as "Europe/Berlin" or "UTC"') from error
    return given


def _condition(given: object) -> Condition:
    try:
        return parse_condition(given, path="")
    except InvalidCondition as error:
        raise PydanticCustomError(
            CONDITION, "{problem}", {"path": error.path, "problem": error.problem}
        ) from error


CONDITION = "condition"
"""The type of pydantic's error for something that is not a condition."""
Text = Annotated[str, AfterValidator(_visible)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PersonSettings(_Part):
    name: Text | None = None
    zone: Annotated[str, AfterValidator(_zone)] | None = None
    console: Text


class MatchSettings(_Part):
    tool: Text | None = None
    agent: Text | None = None
    when: Annotated[Any, AfterValidator(_condition)] = None


class ApprovalSettings(_Part):
    expires_after: Annotated[int, _duration("1s", "90d")] | None = None
    refuse_when_world_moved: bool = False


class RouteSettings(_Part):
    name: Text | None = None
    match: MatchSettings | None = None
    channels: Annotated[tuple[Annotated[str, AfterValidator(_channel)], ...], Field(min_length=1)]
    approvers: tuple[Text, ...]
    expire_after: Annotated[int, _duration("10s", "90d")] = parse_duration("24h")
    confirm: bool = True
    notification: Literal["full", "brief"] = "full"
    approvals: ApprovalSettings = ApprovalSettings()


class StoreSettings(_Part):
    replicas: Annotated[int, Field(ge=0, le=16)] = 0
    confirm_timeout: Annotated[int, _duration("1s", "1m")] = parse_duration("1s")
    allow_unsafe: Annotated[
        tuple[Literal["eviction", "persistence"], ...], BeforeValidator(_split), NoDecode
    ] = ()


class WorkerSettings(_Part):
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    lease: Annotated[int, _duration("5s", "10m")] = parse_duration("30s")


class Settings(BaseSettings):
    """All keys. The environment wins over the file, and the file over what the caller passes."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=PREFIX, env_nested_delimiter=NESTED
    )

    agents: Annotated[
        tuple[Annotated[str, AfterValidator(_agent)], ...],
        Field(min_length=1),
        BeforeValidator(_split),
        NoDecode,
    ]
    listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:8642"
    base_url: Annotated[str, AfterValidator(_base_url)] | None = None
    data_dir: Path = Path(".signoff")
    redis_url: Text | None = None
    redis_url_file: Path | None = None
    store: StoreSettings = StoreSettings()
    worker: WorkerSettings = WorkerSettings()
    people: Annotated[dict[Annotated[str, AfterValidator(_person)], PersonSettings], Field(min_length=1)]
    routes: Annotated[tuple[RouteSettings, ...], Field(min_length=1)]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, TomlConfigSettingsSource(settings_cls), init_settings


def read_file(path: Path) -> Settings:
    """Raises ValidationError, SettingsError, TOMLDecodeError, UnicodeDecodeError or OSError."""

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=path)

    return FromFile()  # pyright: ignore[reportCallIssue]  (the sources bring the arguments)


EXPECTED = {
    "agents": 'a list such as ["agent.examples.refunds:agent"], with at least one agent',
    "listen": 'host:port, such as "127.0.0.1:8642"',
    "base_url": 'an address such as "https://signoff.example.com"',
    "data_dir": "a folder",
    "redis_url": "the address of a Redis or Valkey server",
    "redis_url_file": "a file that holds the address of a Redis or Valkey server",
    "store": "a table [store]",
    "store.replicas": "a whole number from 0 to 16",
    "store.confirm_timeout": 'a duration such as "1s"',
    "store.allow_unsafe": f"a list of some of {', '.join(UNSAFE)}",
    "worker": "a table [worker]",
    "worker.concurrency": "a whole number from 1 to 10000",
    "worker.lease": 'a duration from "5s" to "10m"',
    "people": "at least one person, such as [people.alice]",
    "people.*": "a table with at least console, the login name at this machine",
    "people.*.name": "a name as people call them",
    "people.*.zone": 'a time zone such as "Europe/Berlin"',
    "people.*.console": "the login name at this machine, as `whoami` tells it",
    "routes": "at least one [[routes]]",
    "routes.*": "a table with at least channels and approvers",
    "routes.*.name": "a name for logs and cards",
    "routes.*.match": 'a table such as { tool = "issue_refund" }',
    "routes.*.match.tool": 'the name of a tool, or a pattern such as "refund_*"',
    "routes.*.match.agent": 'the name of an agent, or a pattern such as "support-*"',
    "routes.*.match.when": 'a condition such as { field = "amount", op = "gt", value = 1000 }',
    "routes.*.channels": 'a list such as ["console"], with at least one channel',
    "routes.*.approvers": 'a list of persons such as ["alice"]',
    "routes.*.expire_after": 'a duration such as "24h"',
    "routes.*.confirm": "true or false",
    "routes.*.notification": '"full" or "brief"',
    "routes.*.approvals": 'a table such as { expires_after = "1h" }',
    "routes.*.approvals.expires_after": 'a duration such as "1h"',
    "routes.*.approvals.refuse_when_world_moved": "true or false",
}
"""What each key takes, as its error says it."""

ELSEWHERE = {
    "secret": "set SIGNOFF_SECRET or SIGNOFF_SECRET_FILE: a secret is never in this file",
    "redis_url": "set SIGNOFF_REDIS_URL or SIGNOFF_REDIS_URL_FILE: it may hold a password",
    "redis_url_file": "set SIGNOFF_REDIS_URL_FILE in the environment",
    "on_expiry": "it is the agent's: Agent(on_expiry=…)",
    "on_decline": "it is the agent's: Agent(on_decline=…)",
}
"""Keys that somebody may look for here."""

TO_COME = {
    "quorum": "more than one approval for an ask",
    "remind_after": "reminders",
    "escalate": "escalation",
    "groups": "groups of people",
    "four_eyes": "four-eyes",
    "policy": "policy files",
    "grants": "standing approvals",
    "slack": "Slack",
    "lark": "Lark",
    "email": "e-mail",
    "webhook": "webhooks",
    "webhooks": "webhooks",
}
"""Keys of later versions. They are refused, so that nobody relies on what is not there."""
