"""Where the store is: `SIGNOFF_REDIS_URL` read into one of three kinds of address. Connects to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from gateway.errors import StoreRefused


@dataclass(frozen=True, slots=True)
class Login:
    username: str | None = None
    password: str | None = None
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """One server, in the form that redis-py reads itself."""

    url: str


@dataclass(frozen=True, slots=True)
class Sentinels:
    """Sentinels that know which server is the primary of `service`. `watch` is the login at the sentinels."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    database: int
    login: Login
    watch: Login


@dataclass(frozen=True, slots=True)
class Cluster:
    """Any node of a cluster."""

    hosts: tuple[tuple[str, int], ...]
    login: Login


Address: TypeAlias = Server | Sentinels | Cluster


def parse_address(url: str) -> Address:
    """Raises StoreRefused with the schemes that are understood. Never repeats the URL: it may hold a password."""
    parts = urlsplit(url)
    match parts.scheme:
        case "redis" | "rediss" | "unix":
            return Server(url)
        case "redis+sentinel" | "rediss+sentinel":
            return _sentinels(url)
        case "redis+cluster" | "rediss+cluster":
            return Cluster(_hosts(parts.netloc, default_port=6379), _login(url))
        case scheme:
            raise StoreRefused(
                "expected a store's URL with redis://, rediss://, unix://, redis+sentinel://host:port,host:port/service/0"
                f" or redis+cluster://host:port; got the scheme {scheme!r}"
            )


def _sentinels(url: str) -> Sentinels:
    parts = urlsplit(url)
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise StoreRefused(
            "expected the service's name in redis+sentinel://host:port,host:port/service/0; got none"
        )
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return Sentinels(
        hosts=_hosts(parts.netloc, default_port=26379),
        service=service,
        database=int(database or 0),
        login=_login(url),
        watch=Login(query.get("sentinel_username"), query.get("sentinel_password"), _tls(url)),
    )


def _hosts(netloc: str, *, default_port: int) -> tuple[tuple[str, int], ...]:
    hosts: list[tuple[str, int]] = []
    for place in netloc.rpartition("@")[2].split(","):
        # The last colon is the port's only outside an IPv6 address's brackets.
        host, colon, port = place.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = place, str(default_port)
        if not host or not port.isdecimal():
            raise StoreRefused("expected host:port, or several with commas between, in the store's URL")
        hosts.append((host.strip("[]"), int(port)))
    return tuple(hosts)


def _login(url: str) -> Login:
    username, _, password = urlsplit(url).netloc.rpartition("@")[0].partition(":")
    return Login(unquote(username) or None, unquote(password) or None, _tls(url))


def _tls(url: str) -> bool:
    return url.startswith("rediss")
