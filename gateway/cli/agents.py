"""Which agent a command means: one of the configuration, an example by its short name, or an import string."""

from __future__ import annotations

import importlib
import os

from agent.models import resolve
from agent.spec import AgentSpec
from gateway.app import resolve_agents
from gateway.cli.running import EXAMPLES
from gateway.config import Config
from gateway.errors import CallerError

KEY = "ANTHROPIC_API_KEY"


class NoSuchAgent(CallerError):
    """No agent of this name."""


class NotLive(CallerError):
    """`--live` cannot be had for this agent, or without a key."""


def agents_of(config: Config, wanted: str, *, live: bool = False) -> tuple[dict[str, AgentSpec], str]:
    """All agents that this process serves, and the name of the wanted one. Raises NoSuchAgent, NotLive or BadAgent."""
    imported = wanted if ":" in wanted else EXAMPLES.get(wanted)
    agents = resolve_agents(config.agents if imported in config.agents or imported is None else (imported,))
    name = wanted if wanted in agents else _named(agents, imported)
    if name is None:
        known = ", ".join(sorted({*agents, *EXAMPLES}))
        raise NoSuchAgent(f"no agent {wanted!r}: expected one of {known}, or module:attribute")
    if live:
        agents[name] = _live(imported or wanted)
    return agents, name


def _named(agents: dict[str, AgentSpec], imported: str | None) -> str | None:
    if imported is None:
        return None
    found = next(iter(resolve_agents((imported,))))
    return found if found in agents else None


def _live(imported: str) -> AgentSpec:
    """The same agent on Claude."""
    if not os.environ.get(KEY):
        raise NotLive(f"--live calls Anthropic and needs {KEY} in the environment")
    build = getattr(importlib.import_module(imported.partition(":")[0]), "build", None)
    if build is None:
        raise NotLive(f"--live: expected a function build(model) in {imported.partition(':')[0]}")
    return build(resolve("claude"))
