"""How the examples' scripted models put results into words. Says what really ran, or that nothing did."""

from __future__ import annotations

import re

from agent.messages import ResultStatus, ToolResult

NOTHING_EXECUTED = "\nNothing was executed"
_EDITOR = re.compile(r"\n\n(?P<by>.+?) changed the arguments before approving")


def not_done(result: ToolResult, what: str) -> str:
    """A result that is no success, and what it was about (`the refund of 5000 USD`)."""
    reason = _reason(result)
    match result.status:
        case ResultStatus.DECLINED:
            note = reason.removeprefix("declined by human").removeprefix(":").strip()
            said = f': "{note}"' if note else ""
            return f"Not done. {_capital(what)} was declined{said}."
        case ResultStatus.EXPIRED:
            return f"Not done. Nobody answered about {what} in time, so nothing was run."
        case ResultStatus.UNKNOWN:
            return f"It is not known whether {what} happened. Check it before you ask again."
        case ResultStatus.ERROR if not nothing_ran(result):
            return f"{_capital(what)} failed: {reason}. Check what happened before you ask again."
        case _:
            return f"Not done: {what}. {_capital(reason)}."


def nothing_ran(result: ToolResult) -> bool:
    """Whether it is certain that nothing was executed."""
    return NOTHING_EXECUTED in result.content and result.status is not ResultStatus.UNKNOWN


def editor(result: ToolResult) -> str:
    """Who changed the arguments before approving; empty when nobody did."""
    found = _EDITOR.search(result.content)
    return found["by"] if found else ""


def amount_read(amount: int) -> str:
    """An amount as it ran; a long one with a reading beside."""
    return str(amount) if abs(amount) < 10_000 else f"{amount} ({amount:,})"


def _reason(result: ToolResult) -> str:
    return result.content.partition(NOTHING_EXECUTED)[0].partition("\n\n")[0].strip().rstrip(".")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
