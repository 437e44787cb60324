"""The enforcement door: an action that demands consent executes only with an approval that is bound to it.

Owns what an approval is, the refusals, and the one function that compares. A flag that a caller or a model sets is
never proof; only a stored decision becomes an `Approval`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from agent.action import Action, Difference, difference


class RefusalCode(StrEnum):
    """Why an action was not executed."""

    REQUIRED = "APPROVAL_REQUIRED"
    SPENT = "APPROVAL_SPENT"
    MISMATCH = "APPROVAL_MISMATCH"
    STALE = "APPROVAL_STALE"
    DECLINED = "APPROVAL_DECLINED"
    REVOKED = "APPROVAL_REVOKED"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused crossing. `differs` says in what, for a mismatch."""

    code: RefusalCode
    differs: Difference | None = None

    def __str__(self) -> str:
        return f"{self.code} (differs: {self.differs})" if self.differs else str(self.code)


@dataclass(frozen=True, slots=True)
class Staleness:
    """When an approval is too old to act on. Both default to never: the threshold is the product's decision."""

    expires_after_ms: int | None = None
    refuse_when_world_moved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What a store knows of one decision on an action."""

    action: Action
    answer: Literal["approved", "declined", "open"] = "open"
    spent: bool = False
    revoked: bool = False
    decided_at_ms: int = 0
    state_version: str | None = None
    """The world's version when the ask was opened, where the tool declares one."""


def admit(
    approval: Approval | None,
    attempted: Action,
    *,
    now_ms: int,
    staleness: Staleness = Staleness(),
    state_version: str | None = None,
) -> Refusal | None:
    """Whether an action may execute under an approval: None, or why not. `state_version` is the world's, now."""
    if approval is None or approval.answer == "open":
        return Refusal(RefusalCode.REQUIRED)
    if approval.answer == "declined":
        return Refusal(RefusalCode.DECLINED)
    if approval.revoked:
        return Refusal(RefusalCode.REVOKED)
    differs = difference(approval.action, attempted)
    if differs is not None:
        return Refusal(RefusalCode.MISMATCH, differs)
    if approval.spent:
        return Refusal(RefusalCode.SPENT)
    if _stale(approval, staleness, now_ms=now_ms, state_version=state_version):
        return Refusal(RefusalCode.STALE)
    return None


def _stale(approval: Approval, staleness: Staleness, *, now_ms: int, state_version: str | None) -> bool:
    too_old = (
        staleness.expires_after_ms is not None
        and now_ms - approval.decided_at_ms > staleness.expires_after_ms
    )
    moved = staleness.refuse_when_world_moved and state_version != approval.state_version
    return too_old or moved
