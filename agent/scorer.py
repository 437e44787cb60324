"""How much a piece of context has to do with a choice: a number from 0 to 1.

Owns the scorer's type and the default one. Knows nothing of evidence, transcripts or models: it compares two
texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

Scorer = Callable[[str, str], float]
"""Gets the text of the choice and that of a unit of context; more is more related, 0 or less is unrelated."""

STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can do does for from has have he her his i if in is it its me my
    no not of on or our she so that the their them then they this to was we were will with you your
    """.split()  # noqa: SIM905  (a list of sixty lines says no more)
)

# Scripts written without spaces, and Hangul, where particles stick to words.
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"  # Hangul
)
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]").match
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def overlap(choice: str, unit: str) -> float:
    """The default scorer: the share of both texts' tokens that they have in common (Jaccard). Deterministic."""
    ours, theirs = tokens(choice), tokens(unit)
    shared = len(ours & theirs)
    return shared / (len(ours) + len(theirs) - shared) if shared else 0.0


# Every unit is compared with the same choice, and again at the next call of the same conversation.
@lru_cache(maxsize=1024)
def tokens(text: str) -> frozenset[str]:
    """A text's words without the commonest; of scripts without spaces, each pair of neighbouring characters.

    Compared without case or width (`ＡＢＣ` is `abc`); `issue_refund` is two words, `5,000` is `5000`.
    """
    folded = _folded(text)
    words = _WORD.findall(_THOUSANDS.sub("", folded) if "," in folded else folded)
    if not text.isascii():
        words = [token for word in words for token in _tokens_of(word)]
    return frozenset(words) - STOP_WORDS


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Folding case can take a text apart again: https://www.unicode.org/reports/tr15/#Design_Goals
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _tokens_of(word: str) -> Iterator[str]:
    if len(word) > 1 and _IS_UNSPACED(word):
        yield from (word[at : at + 2] for at in range(len(word) - 1))
    else:
        yield word
