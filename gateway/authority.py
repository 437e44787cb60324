"""Who may decide an ask: listed persons, and nobody else.

Owns what an approver reference means and the check at the last moment. Fails closed: nobody is listed, or is known, and
nobody may. Knows nothing of channels; who is asking was verified by theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.ask import AskRecord
from gateway.errors import CallerError, Terminal
from gateway.ids import PersonId
from gateway.people import People


class NotAllowed(CallerError):
    """This person may not decide this ask. `who_can` names those who may."""

    def __init__(self, who_can: tuple[str, ...]) -> None:
        others = (
            f"{' or '.join(who_can)} can" if who_can else "nobody who is configured can: list an approver"
        )
        super().__init__(f"you can't decide this one: {others}")
        self.who_can = who_can


class NobodyMayDecide(Terminal):
    """An empty list of approvers. It opens no door: the start stops here."""

    def __init__(self) -> None:
        super().__init__(
            'expected at least one approver, such as ["alice"]; got an empty list: name who may decide'
        )


class UnknownApprover(Terminal):
    """A reference to somebody who is not configured."""

    def __init__(self, reference: str, known: Iterable[str]) -> None:
        expected = f"expected one of {', '.join(sorted(known)) or '[people.…], of whom there are none'}"
        super().__init__(f"{expected}; got {reference!r}: correct it, or add [people.{reference}]")
        self.reference = reference


class GroupsNotSupported(Terminal):
    """A reference to a group, which this version cannot resolve."""

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"{reference!r}: groups come in a later version; this one takes persons: list them one by one"
        )


@dataclass(frozen=True, slots=True)
class Authority:
    """Who may decide, by the people who are configured now."""

    people: People

    def resolve(self, references: Iterable[str]) -> frozenset[PersonId]:
        """The persons that references stand for. Raises NobodyMayDecide, UnknownApprover, GroupsNotSupported."""
        persons = frozenset(self._person(reference) for reference in references)
        if not persons:
            raise NobodyMayDecide
        return persons

    def check(self, record: AskRecord, person: PersonId) -> None:
        """Raises NotAllowed. An approver who was taken out of the configuration may not, whatever the record says."""
        allowed = self.approvers(record)
        if person not in allowed:
            raise NotAllowed(self.people.names(allowed))

    def approvers(self, record: AskRecord) -> frozenset[PersonId]:
        """Who may decide this ask now. Requesters are not taken out: four-eyes is off."""
        listed = (PersonId(reference) for reference in record.approvers)
        return frozenset(person for person in listed if self.people.get(person) is not None)

    def _person(self, reference: str) -> PersonId:
        if reference.startswith("group:"):
            raise GroupsNotSupported(reference)
        person = self.people.get(PersonId(reference))
        if person is None:
            raise UnknownApprover(reference, (p.id for p in self.people))
        return person.id
