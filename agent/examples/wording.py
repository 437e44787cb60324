"""How the examples' scripted models put results into words. Says what really ran, or that nothing did."""

from __future__ import annotations

import re

from agent.messages import ResultStatus, ToolResult

_EDITOR = re.compile(r"\n\n(?P<by>.+?) changed the arguments before approving")


def not_done(result: ToolResult) -> str:
    """A result that is no success, in one sentence or two."""
    reason = _reason(result)
    match result.status:
        case ResultStatus.DECLINED:
            note = reason.removeprefix("declined by human").removeprefix(":").strip()
            return f"Not done. It was declined: “{note}”." if note else "Not done. It was declined."
        case ResultStatus.EXPIRED:
            return "Not done. Nobody answered in time, so nothing was run."
        case ResultStatus.UNKNOWN:
            return "It is not known whether it ran. Check before asking again."
        case ResultStatus.ERROR if "\nNothing was executed" not in result.content:
            return f"Something went wrong: {reason}. Check what happened before asking again."
        case _:
            return f"Not done: {reason}."


def editor(result: ToolResult) -> str:
    """Who changed the arguments before approving; empty when nobody did."""
    found = _EDITOR.search(result.content)
    return found["by"] if found else ""


def amount_read(amount: int) -> str:
    """An amount as it ran; a long one with a reading beside."""
    return str(amount) if abs(amount) < 10_000 else f"{amount} ({amount:,})"


def _reason(result: ToolResult) -> str:
    return result.content.partition("\nNothing was executed")[0].partition("\n\n")[0].strip().rstrip(".")
