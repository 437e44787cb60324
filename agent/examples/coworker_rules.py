"""The rules of the coworker that needs no key: draft the weekly status, save it, then ask to post it.

Owns the conversation. Reads the transcript alone: the notes by `notes.py`; the tools stand in `coworker.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.examples.notes import DEFAULT_CHANNEL, Notes, read_notes
from agent.examples.wording import editor, not_done, nothing_ran
from agent.scripted import Conversation, Exchange, Outcome, Piece, Rule, call, otherwise, say

DRAFT = "weekly-status"
HELP = (
    "I write the weekly status. Give me notes, for example: "
    "Shipped the login page; next: billing; blocked: no test account. Post it to #team."
)
ASK_NOTES = "What should the status say? For example: Shipped the login page; next: billing."
NO_NOTES = "Not done. I found no notes in that. " + HELP
SAVED = f"Done. Saved drafts/{DRAFT}.md; nothing was posted."
KEPT = f"The draft stays in drafts/{DRAFT}.md"

_ABOUT = {"save_draft": "the draft", "ask_user": "the notes"}
_WANTS_STATUS = re.compile(r"\b(?:status|report|update|draft|summary|notes|post)\b", re.IGNORECASE)
_POSTED = re.compile(r"posted to (#\S+)")


def report(conversation: Conversation) -> Piece | None:
    """A post came back: say what really happened."""
    posts = [outcome for outcome in conversation.news if outcome.use.name == "post_to_channel"]
    return say(_report_post(posts[-1])) if posts else None


def give_up(conversation: Conversation) -> Piece | None:
    """The draft could not be saved, or nobody told us what to write."""
    lost = [outcome for outcome in conversation.news if not outcome.result.ok]
    return say(not_done(lost[-1].result, _ABOUT.get(lost[-1].use.name, "it"))) if lost else None


def write(conversation: Conversation) -> Piece | Sequence[Piece] | None:
    """Notes: draft them, save the draft, then ask to post it."""
    notes = _notes_of(conversation.now)
    if not notes.items:
        return _ask_for_notes(conversation)
    if not conversation.now.of("save_draft"):
        return [say("I save the draft first."), call("save_draft", name=DRAFT, text=notes.status)]
    if notes.keep:
        return say(SAVED)
    channel = notes.channel or DEFAULT_CHANNEL
    sections = ", ".join(notes.headings).lower()
    intent = (
        f"The draft is saved: {len(notes.items)} notes ({sections}). Everybody in {channel} would read it."
    )
    return [say(intent), call("post_to_channel", channel=channel, text=notes.status)]


RULES: tuple[Rule, ...] = (report, give_up, write, otherwise(HELP))


def _notes_of(exchange: Exchange) -> Notes:
    """The notes of a message, or else of the answer to our question about them."""
    typed = read_notes(exchange.said)
    answers = [outcome.result.content for outcome in exchange.of("ask_user") if outcome.result.ok]
    if typed.items or not answers:
        return typed
    answered = read_notes(answers[-1])
    return Notes(answered.items, answered.channel or typed.channel, keep=answered.keep or typed.keep)


def _ask_for_notes(conversation: Conversation) -> Piece | None:
    if conversation.now.of("ask_user"):
        return say(NO_NOTES)
    return call("ask_user", question=ASK_NOTES) if _WANTS_STATUS.search(conversation.said) else None


def _report_post(outcome: Outcome) -> str:
    result, channel = outcome.result, str(outcome.use.arguments["channel"])
    if not result.ok:
        kept = f"{KEPT}; nothing was posted." if nothing_ran(result) else f"{KEPT}."
        return f"{not_done(result, f'the post to {channel}')} {kept}"
    posted = _POSTED.search(result.content)
    done = f"Done. Posted to {posted[1] if posted else channel}."
    by = editor(result)
    return f"{done} {by} changed it before it was posted." if by else done
