"""What the model is told about calls that did not simply run. All such texts, in one place.

Each says first what happened and then, in words that cannot be narrated as a success, that nothing was executed.
"""

from __future__ import annotations

import json

from agent.decision import Approved, Happened
from agent.run import Call, FinishReason

DENIED_BY_POLICY = "denied by policy"
TOO_MANY_CALLS = "not executed (TOO_MANY_CALLS): at most 64 calls in one reply"
REPLY_CUT_OFF = "not executed (TRUNCATED): the reply was cut off, so none of its calls was considered"
REPLY_REFUSED = "not executed (REFUSED): the reply ended in a refusal"
NOT_KNOWN = "It is not known whether this ran (UNKNOWN). Do not report it as done."
LATE_INPUT = "not executed (LATE): the tool asked for input after it had been given up; call it again"


def declined(note: str) -> str:
    said = f"declined by human: {note}" if note else "declined by human"
    return f"{said}\nNothing was executed (DECLINED)."


def denied(tell: str) -> str:
    return f"{tell or DENIED_BY_POLICY}\nNothing was executed (DENIED)."


def refused(code: str, problem: str) -> str:
    return f"{problem}\nNothing was executed ({code})."


def expired(asked: str) -> str:
    verb = {"question": "answered", "input_request": "answered"}.get(asked, "decided")
    return f"not executed: nobody {verb} in time\nNothing was executed (EXPIRED)."


def withdrawn() -> str:
    return "not executed: the request was withdrawn\nNothing was executed (CANCELLED)."


def input_cancelled() -> str:
    return json.dumps({"status": "input_cancelled"})


def skipped(reason: FinishReason) -> str:
    why = {
        FinishReason.DENIED: "another step of this run was declined or denied",
        FinishReason.HALTED: "the run was halted",
        FinishReason.EXPIRED: "nobody decided another step of this run in time",
        FinishReason.CANCELLED: "the run was stopped",
    }.get(reason, "the run ended")
    return f"not executed: {why}\nNothing was executed (SKIPPED)."


def happened(decision: Happened) -> str:
    said = f": {decision.note}" if decision.note else ""
    return f"A person confirmed that this took effect{said}. Its own answer was lost."


def did_not_happen() -> str:
    return "A person confirmed that this took no effect.\nNothing was executed (CANCELLED)."


def raised(error: str) -> str:
    return f"the tool failed: {error}"


def unanswered(attempts: int) -> str:
    return f"the tool gave no answer, {attempts} times. {NOT_KNOWN}"


def provenance(call: Call) -> str:
    """Which arguments really ran and who changed them; empty when nobody did."""
    if call.action is None or call.approved is None or call.approved.arguments is None:
        return ""
    return f"\n\n{_editor(call.approved)} What ran: {call.action.arguments_json}"


def _editor(approved: Approved) -> str:
    note = f' ("{approved.note}")' if approved.note else ""
    return f"{approved.by} changed the arguments before approving{note}. Do not repeat the original call."


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
