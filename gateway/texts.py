"""Every fixed text that people see, in one catalogue: message ids to templates with named placeholders.

Owns the wording. A text is asked for by id with its values; a missing or a superfluous value is an error, so that no
card ever shows a hole. Languages are tables beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ENGLISH: Mapping[str, str] = {
    # --- the ask
    "deciders": "{names} can decide",
    "answerers": "{names} can answer",
    "deadline": "until {time}, then it is not run",
    "deadline-question": "until {time}, then the agent goes on without an answer",
    "asked-by": "Asked by {name}",
    "asked-by-in": "Asked by {name} in {place}",
    "agent": "agent: {agent}",
    "agent-says": "Agent says (not checked):",
    "because": "Because:",
    "no-arguments": "No arguments",
    "empty-text": "(empty text)",
    "none": "(none)",
    "hidden": "Hidden here: {names}. The tool gets the real values.",
    "too-long": "Too long for here: {shown} of {all} fields shown.",
    "small-print": "{tool} · shown {digest} · {ask}",
    "agent-asked-for": "Agent asked for {value}",
    "cannot-change": "Can't be changed",
    # --- buttons
    "approve": "Approve",
    "decline": "Decline…",
    "edit": "Edit…",
    "details": "Details",
    "confirm": "Approve this? {question} It runs as soon as you approve.",
    "approve-with-changes": "Approve with changes",
    "go-back": "Go back",
    "reason": "Reason (the agent reads it; Enter for none)",
    "if-declined": "If you decline, nothing is run. The agent may ask again for something else.",
    # --- question, input request, outcome question
    "other": "Other…",
    "input-header": "I need {count} details to go on",
    "input-header-one": "I need a detail to go on",
    "fill-in": "Fill in",
    "cancel": "Cancel",
    "still-missing": "Saved. Still missing: {names}.",
    "did-this-happen": "Did this happen? {action}",
    "outcome-why": "We stopped while it was running and can't tell. Check first.",
    "outcome-safe": "It did not: run it now…",
    "outcome-unsafe": "It did not and cannot still happen: run it now…",
    "it-happened": "It happened",
    "stop": "Stop",
    "confirm-again": "Run it now? {question} It runs as soon as you say yes.",
    # --- decided
    "approved": "✅ Approved: {action}",
    "approved-changed": "✅ Approved with changes: {action}",
    "declined": "🚫 Declined: {action}",
    "answered": "✅ Answered: {action}",
    "input-given": "✅ Filled in: {action}",
    "input-cancelled": "🚫 Cancelled: {action}",
    "happened": "✅ It happened: {action}",
    "run-again": "✅ Run again: {action}",
    "given-up": "⏹ Stopped: {action}",
    "expired": "⌛ Expired: {action}. Nobody decided in time. It was not run.",
    "withdrawn": "↩ Withdrawn: {action} by {name}",
    "superseded": "⏹ Not needed: {because}",
    "revoked": "↩ Taken back by {name} before it ran",
    "decided-by": "By {name}, {time}",
    "running": "… Running since {time}",
    "done": "✓ Done, {time}",
    "failed": "✗ Failed, nothing more will be tried: {line}",
    "not-run": "✗ Not run: {line}",
    "unknown": "? Not known whether it ran: question below",
    # --- only you see this
    "recorded-approved": "Recorded: you approved it.",
    "recorded-changed": "Recorded: you approved it with changes.",
    "recorded-declined": "Recorded: you declined it. It was not run.",
    "recorded-answer": "Recorded. The agent goes on.",
    "recorded-vote": "Recorded. More people have to agree before it runs.",
    "already": "{name} decided this at {time}: {what}.",
    "already-expired": "Nobody decided in time. It was not run.",
    "already-withdrawn": "This was withdrawn. It was not run.",
    "already-superseded": "This is no longer needed.",
    "not-allowed": "You can't decide this one. {names} can.",
    "nobody-can": "Nobody who is configured can decide this one. Ask whoever runs Signoff.",
    "changed": "This has changed since you saw it. Look at it again.",
    "look-again": "A rule changed what you entered. Look at it again before it runs.",
    "not-recorded": "Not recorded, please press again.",
    "not-confirmed": "Stored, but not yet confirmed by all copies. It is not run until it is.",
    "settled-meanwhile": "Its result came in meanwhile. The run goes on with that.",
    "unknown-ask": "This was decided long ago.",
    # --- the requester
    "waiting": "I need approval: {question} Asked {names}, until {time}.",
    "queued": "Noted. I'll read it after the decision; it does not approve anything.",
    "ended-empty": "Done.",
    "ended-declined": "Not done. {text}",
    "ended-max-turns": "Stopped after {turns} steps without finishing.",
    "ended-cancelled": "Stopped by {name}. Nothing more will run.",
    "ended-cancelled-alone": "Stopped. Nothing more will run.",
    "ended-denied": "Not done. {reason} Nothing more will run.",
    "ended-halted": "Stopped by a rule. Nothing more will run.",
    "ended-expired": "Not done. Nobody decided in time. Nothing more will run.",
    "ended-refused": "The model would not go on with this. Nothing more will run.",
    "ended-truncated": "The answer was cut off. Nothing of it was run.",
    "ended-context": "The conversation is too long to go on. Start a new one.",
    "ended-failed": "Something failed on our side; nothing more will run. Ref {ref}.",
    "declined-by": "{name} declined.",
    "declined-by-note": '{name} declined: "{note}".',
}
LANGUAGES: Mapping[str, Mapping[str, str]] = {"en": ENGLISH}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def text(id: str, lang: str = "en", **values: object) -> str:
    """The text with this id. Raises KeyError for an unknown id or a missing value, ValueError for a superfluous one."""
    template = LANGUAGES.get(lang, ENGLISH)[id]
    wanted = placeholders(template)
    if set(values) - wanted:
        raise ValueError(f"text {id!r} has no place for {sorted(set(values) - wanted)}")
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), template)


def placeholders(template: str) -> frozenset[str]:
    return frozenset(_PLACEHOLDER.findall(template))


def listed(names: tuple[str, ...], *, word: str = "or") -> str:
    """`Ann, Bob or Mia`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
