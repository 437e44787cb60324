"""Makes what cannot be seen visible: control, bidirectional, zero-width and filler characters, floods of white space.

Owns the escape, `⟨U+202E⟩`, and its inverse: what is shown determines the value, character for character. Pure.
"""

from __future__ import annotations

import re
import unicodedata

OPEN, CLOSE = "⟨", "⟩"
LINE_BREAKS_SHOWN = 3
SPACES_SHOWN = 8
MARKS_SHOWN = 2
"""So many in a row are shown as they are; more become a count."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as nothing: Hangul fillers, the blank Braille pattern, joiners."""
_VARIATIONS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x180B, 0x1810))
_FLOOD = re.compile(r"\n{4,}| {9,}")
_ESCAPE = re.compile(r"⟨(?:U\+([0-9A-F]{4,6})|(\d+) (line breaks|spaces))⟩")


def visible(text: str) -> str:
    """The text as it is safe to show in plain text. `read_back` returns the original."""
    escaped = "".join(_escaped(text, place) for place in range(len(text)))
    return _FLOOD.sub(_counted, escaped)


def read_back(shown: str) -> str:
    """The value that a shown text stands for."""
    return _ESCAPE.sub(_original, shown)


def is_plain(text: str) -> bool:
    """Whether the text is shown exactly as it is."""
    return visible(text) == text


def _escaped(text: str, place: int) -> str:
    character = text[place]
    if character.isascii() and (character.isprintable() or character == "\n"):
        return character
    return _code(character) if _hidden(text, place, character) else character


def _hidden(text: str, place: int, character: str) -> bool:
    if character in (OPEN, CLOSE) or character in _BLANKS:
        return True
    category = unicodedata.category(character)
    if category in _HIDDEN_CATEGORIES or (category == "Zs" and character != " "):
        return True
    if any(ord(character) in variations for variations in _VARIATIONS):
        return True
    return category in ("Mn", "Me") and _flooded(text, place)


def _flooded(text: str, place: int) -> bool:
    """A mark that follows several marks: one base may carry a few, not a tower."""
    before = text[max(0, place - MARKS_SHOWN) : place]
    return len(before) == MARKS_SHOWN and all(unicodedata.category(c) in ("Mn", "Me") for c in before)


def _code(character: str) -> str:
    return f"{OPEN}U+{ord(character):04X}{CLOSE}"


def _counted(run: re.Match[str]) -> str:
    what = "line breaks" if run[0][0] == "\n" else "spaces"
    return f"{OPEN}{len(run[0])} {what}{CLOSE}"


def _original(escape: re.Match[str]) -> str:
    code, count, what = escape.groups()
    if code is not None:
        return chr(int(code, 16))
    return ("\n" if what == "line breaks" else " ") * int(count)
