"""Whether a server may be trusted with decisions: its version, what it does when full, what it keeps.

Owns the questions and the words of the refusals. Judges facts that others fetched. `allow_unsafe` names what an
operator takes upon themselves: `eviction`, `persistence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import StoreRefused
from gateway.partitions import PARTITIONS

OLDEST = (7, 2)
UNSAFE = ("eviction", "persistence")
"""What can be allowed by name."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    version: str
    eviction: str
    keeps: bool


def read_facts(info: bytes, save: str | None) -> ServerFacts:
    """From INFO, and from CONFIG GET save where the server lets us ask; None where it does not."""
    fields = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    return ServerFacts(
        # Valkey calls itself redis 7.2.4 whatever its own version is.
        version=fields.get("valkey_version") or fields.get("redis_version", ""),
        eviction=fields.get("maxmemory_policy", "unknown"),
        keeps=fields.get("aof_enabled") == "1" or bool(save),
    )


def check_allowed_names(allow_unsafe: Sequence[str]) -> None:
    unknown = sorted(set(allow_unsafe) - set(UNSAFE))
    if unknown:
        raise StoreRefused(
            f"expected allow_unsafe to name some of {', '.join(UNSAFE)}; got {', '.join(unknown)}"
        )


def check_server(facts: ServerFacts, *, allow_unsafe: Sequence[str]) -> None:
    """Raises StoreRefused for a server that could lose what it acknowledged."""
    if _version(facts.version) < OLDEST:
        raise StoreRefused(
            f"expected Redis or Valkey {OLDEST[0]}.{OLDEST[1]} or newer; got {facts.version or 'no version'}:"
            " use a newer server"
        )
    if facts.eviction != "noeviction" and "eviction" not in allow_unsafe:
        raise StoreRefused(
            f"expected maxmemory-policy noeviction; got {facts.eviction}: this server deletes decisions when its memory"
            " is full. Set it to noeviction, or allow 'eviction' by name"
        )
    if not facts.keeps and "persistence" not in allow_unsafe:
        raise StoreRefused(
            "expected a server that keeps its data (appendonly yes, or save); got one that forgets every decision when"
            " it restarts. Turn one on, or allow 'persistence' by name"
        )


def check_identity(found: str | None, known: str | None) -> None:
    """`known` is what this process saw at its start; None before that. Raises StoreRefused on any other store."""
    if known is not None and found is None:
        raise StoreRefused(
            "the store came back empty: nothing is decided on it. Restore it, then start again"
        )
    if known is not None and found != known:
        raise StoreRefused("another store answers at the same address: start again if that is meant")
    if found is not None and not found.endswith(f" {PARTITIONS}"):
        count = found.rpartition(" ")[2]
        raise StoreRefused(
            f"expected a store of {PARTITIONS} partitions; got one of {count}: it is of another version"
        )


def check_permissions(refused: Sequence[str]) -> None:
    """Raises StoreRefused if the server's user may not do all that a commit does: it would stop midway."""
    if refused:
        raise StoreRefused(
            f"the store's user may not use {', '.join(refused)} on signoff:*: allow it, or use another"
        )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
