"""The people of the configuration, and under which identities each channel knows them.

Owns who is who. Must not know what anybody may do (`authority.py`), nor how a channel verifies an identity.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from gateway.errors import Terminal
from gateway.ids import PersonId


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A human. `identities` says for each channel how they are called there: `{"console": "ann"}`."""

    id: PersonId
    name: str
    zone: ZoneInfo | None = None
    """Where times are shown to them; None: in UTC."""
    identities: Mapping[str, str] = field(default_factory=dict[str, str])


class AmbiguousPeople(Terminal):
    """Two people who could be taken for one another. The start stops here."""


class People:
    """Everybody who is configured. Raises AmbiguousPeople when two could be mistaken for one another."""

    def __init__(self, persons: Iterable[Person]) -> None:
        everybody = tuple(persons)
        _refuse_look_alikes("an id", ((p.id, p) for p in everybody))
        _refuse_look_alikes("a name", ((p.name, p) for p in everybody))
        for channel in sorted({channel for p in everybody for channel in p.identities}):
            known = ((p.identities[channel], p) for p in everybody if channel in p.identities)
            _refuse_look_alikes(f"an identity on {channel}", known)
        self._by_id = {p.id: p for p in everybody}
        self._by_identity = {(c, identity): p for p in everybody for c, identity in p.identities.items()}

    def __iter__(self) -> Iterator[Person]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, id: PersonId) -> Person | None:
        return self._by_id.get(id)

    def by_identity(self, channel: str, identity: str) -> Person | None:
        """Exactly as configured, to the letter: whoever is almost somebody is nobody."""
        return self._by_identity.get((channel, identity))

    def names(self, ids: Iterable[PersonId]) -> tuple[str, ...]:
        """As people call them, in the configuration's order; an id that is no longer configured stands for itself."""
        wanted = set(ids)
        known = tuple(p.name for p in self if p.id in wanted)
        return known + tuple(sorted(id for id in wanted if id not in self._by_id))


def _refuse_look_alikes(what: str, known: Iterable[tuple[str, Person]]) -> None:
    """`known` pairs what could be mistaken with whose it is. The text itself stays out of the message."""
    taken: dict[str, Person] = {}
    for text, person in known:
        if not _looks(text):
            raise AmbiguousPeople(f"people.{person.id}: expected {what} that can be seen; got an empty one")
        for look in _looks(text):
            other = taken.setdefault(look, person)
            if other is not person:
                raise AmbiguousPeople(
                    f"people.{person.id} and people.{other.id}: expected {what} that nobody can take for another's;"
                    " these two are the same, or look the same. Change one of them"
                )


def _looks(text: str) -> frozenset[str]:
    """What a text is taken for: by readers who do not mind case, and by those who go by shape."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", text) if not _unseen(c)).translate(
        _ACROSS_SCRIPTS
    )
    return frozenset({f"read {seen.casefold()}", f"shape {seen.translate(_SHAPES)}"}) if seen else frozenset()


def _unseen(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cf", "Cc")


# The letters of other scripts that are drawn like a Latin one (Unicode TR39), as far as names are written in them.
_ACROSS_SCRIPTS = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјорсхуԁһΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρ",
    "ABESIJKMHOPCTXYaesijopcxydhABEZHIKMNOPTYXovp",
)
_SHAPES = str.maketrans("I|10", "lllO")
