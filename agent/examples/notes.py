"""Reads a person's own notes, and sorts them into a weekly status. Pure: text in, notes out.

Owns the reading of notes, channels and of whether to post. Knows nothing of conversations, tools or models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEADINGS = ("Done", "Next", "Blocked")
DEFAULT_CHANNEL = "#team"

_NAMES_BLOCKED = re.compile(
    r"^(?:block(?:ed|ers?)|stuck|waiting)\b|\bwaiting (?:for|on)\b|\bblocked\b", re.IGNORECASE
)
_NAMES_NEXT = re.compile(r"^(?:next|to ?do|plan(?:s|ned)?|will|going to)\b|\bnext week\b", re.IGNORECASE)
_LABEL = re.compile(
    r"^(?:done|shipped(?=:)|next(?: week)?|to ?do|plans?|blocked|blockers?|notes)\s*(?::|\s-\s)\s*",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"#[a-z0-9][a-z0-9_-]{0,79}\b", re.IGNORECASE)
_KEEP = re.compile(
    r"(?:do not|don'?t|without|no)\s+(?:post|send|share|publish)|(?:only|just)\s+(?:a |the |save |as )*draft",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*[-*•]\s+")
_NOTE_END = re.compile(r";|(?<=[.!?。])\s+")
_POLITE = re.compile(
    r"^(?:(?:please|hi|hello|hey|thanks|thank you|can you|could you|just|only|but|and)\b[,!.]?\s*)+",
    re.IGNORECASE,
)
# "Write my weekly status:", "post it to #team", "do not share this"; not "write tests".
_TELLS_US = re.compile(
    r"^(?:write|draft|make|prepare|create|save|post|send|share|publish|keep|do not|don'?t|my|the|weekly|status)\b"
    r"[^:]{0,80}?(?:\b(?:status|report|update|summary|drafts?|notes|it|this|that)\b|#\w)[^:]{0,60}(?::|$)",
    re.IGNORECASE,
)
_ASKS_US = re.compile(r"^(?:what|who|how|why|when|where|which|are|is|do|does)\b.*\?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Notes:
    """What a person typed, sorted. `items` are pairs of heading and note, in the order in which they were typed."""

    items: tuple[tuple[str, str], ...]
    channel: str = ""
    keep: bool = False
    """Only a draft is wanted."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Those that have notes."""
        return tuple(heading for heading in HEADINGS if any(under == heading for under, _ in self.items))

    @property
    def status(self) -> str:
        """The weekly status as it is saved and posted."""
        return "\n".join(["Weekly status", *self._lines()])

    def _lines(self) -> Iterator[str]:
        for heading in self.headings:
            yield f"\n{heading}"
            yield from (f"- {note}" for under, note in self.items if under == heading)


def read_notes(text: str) -> Notes:
    """Sort what was typed into done, next and blocked."""
    channel = _CHANNEL.search(text)
    items = tuple(item for line in text.splitlines() for item in _read_line(line))
    return Notes(items, channel[0].lower() if channel else "", keep=_KEEP.search(text) is not None)


def _read_line(line: str) -> Iterator[tuple[str, str]]:
    """A line's notes. A label counts for what follows on its line; what is meant for us is none."""
    bullet = _BULLET.match(line)
    heading = ""
    for part in _NOTE_END.split(line[bullet.end() :] if bullet else line):
        note = part.strip() if bullet else _without_words_to_us(part.strip())
        heading = _named(note) or heading or "Done"
        bare = _LABEL.sub("", note).strip(" .")
        if bare:
            yield heading, bare[:1].upper() + bare[1:]


def _without_words_to_us(part: str) -> str:
    rest = _POLITE.sub("", part)
    if _ASKS_US.match(rest) or rest.strip(" .!") == "":
        return ""
    return _TELLS_US.sub("", rest.rstrip(" ."), count=1).strip()


def _named(note: str) -> str:
    """The heading that a note's own words name."""
    if _NAMES_BLOCKED.search(note):
        return "Blocked"
    return "Next" if _NAMES_NEXT.search(note) else ""
