"""Rules that stand before everything else: allow, ask, deny or halt, without a person.

Owns the port and its verdicts. A policy is a plain callable; files of rules come through the same port.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """One proposed call, as a rule sees it: the model's own arguments, not yet validated."""

    tenant: str
    agent: str
    tool: str
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class PolicyAllow:
    """No objection. The tool's own check-in still decides."""


@dataclass(frozen=True, slots=True)
class PolicyAsk:
    """A person must agree. `reason` stands on the card."""

    reason: str


@dataclass(frozen=True, slots=True)
class PolicyDeny:
    """No. The model reads `tell_llm`, or a plain "denied by policy"; `reason` is for operators."""

    reason: str = ""
    tell_llm: str = ""


@dataclass(frozen=True, slots=True)
class PolicyHalt:
    """No, and the run ends. The reason never reaches the model."""

    reason: str = ""


PolicyVerdict = PolicyAllow | PolicyAsk | PolicyDeny | PolicyHalt
Policy = Callable[[PolicyRequest], PolicyVerdict | Awaitable[PolicyVerdict]]


class PolicyFailed(Exception):
    """The policy raised, or returned something else than a verdict. The call is denied."""


async def consult(policy: Policy | None, request: PolicyRequest) -> PolicyVerdict:
    """The policy's verdict; without a policy, no objection. Raises PolicyFailed."""
    if policy is None:
        return PolicyAllow()
    try:
        verdict = policy(request)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    except Exception as error:
        raise PolicyFailed(f"{type(error).__name__}: {error}") from error
    return _checked(verdict)


def _checked(verdict: object) -> PolicyVerdict:
    """Policies are users' code: whatever is not a verdict must not be taken for one."""
    if not isinstance(verdict, PolicyAllow | PolicyAsk | PolicyDeny | PolicyHalt):
        raise PolicyFailed(f"expected a policy verdict, received a {type(verdict).__name__}")
    return verdict
