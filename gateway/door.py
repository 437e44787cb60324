"""The enforcement door: right before a tool, an approval is compared with what is about to run.

Owns the comparison of a stored ask with a call. Refuses whatever was changed in the store, was decided for something
else, was used, taken back, or is too old. Spends nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.action import Action
from agent.approval import Approval, RefusalCode, admit
from agent.checkin import CheckIn
from agent.decision import Approved, RunAgain
from agent.gate import world_version
from agent.perform import Performer, unfit
from agent.run import Call
from agent.spec import AgentSpec
from gateway.ask import AskRecord, BindingDecision
from gateway.routing import Routes
from gateway.seal import Key, check


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a step needs beside the run: the agent's hands, the routes, the key, this process, the time."""

    performer: Performer
    routes: Routes
    key: Key
    instance: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a call does not run: a code for the journal, and a sentence for the model and the card."""

    code: str
    problem: str


async def refuse(call: Call, record: AskRecord | None, *, setting: Setting) -> Refused | None:
    """Whether a call may run now: None, or why not. `record` is the ask that a person approved it by."""
    tool = setting.performer.spec.toolbox.get(call.tool)
    problem = unfit(tool, call.action)
    if problem is not None:
        return Refused("TOOL_CHANGED", problem)
    if call.approved is None:
        return None
    if (
        tool is None
        or call.action is None
        or record is None
        or record.action is None
        or record.decided is None
    ):
        return Refused(RefusalCode.REQUIRED, "no approval of this call is on record")
    if record.decided.digest != record.digest or not check(setting.key, record.decided, ask_id=record.id):
        return Refused(RefusalCode.MISMATCH, "the stored decision is not the one that was given")
    refusal = admit(
        _approval(call, record, record.action, record.decided, idempotent=tool.idempotent),
        call.action,
        now_ms=setting.now_ms,
        staleness=record.staleness,
        state_version=await world_version(tool, call.action)
        if record.staleness.refuse_when_world_moved
        else None,
    )
    return Refused(refusal.code, str(refusal)) if refusal else None


def is_idempotent(spec: AgentSpec, name: str) -> bool:
    """Whether a tool may simply run again. One that is gone may not."""
    tool = spec.toolbox.get(name)
    return tool is not None and tool.idempotent


def _approval(
    call: Call, record: AskRecord, action: Action, decided: BindingDecision, *, idempotent: bool
) -> Approval:
    runs_again = idempotent and record.spent_by in {attempt.id for attempt in call.attempts[:-1]}
    return Approval(
        action=action,
        answer="approved" if isinstance(decided.decision, Approved | RunAgain) else "declined",
        spent=record.spent_by is not None and not runs_again,
        revoked=record.revoked_by is not None,
        decided_at_ms=decided.at_ms,
        state_version=record.ask.state_version if isinstance(record.ask, CheckIn) else None,
    )
