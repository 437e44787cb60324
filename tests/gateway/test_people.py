"""Who is who, and that nobody can be taken for somebody else."""

from __future__ import annotations

import pytest

from gateway.ids import PersonId
from gateway.people import AmbiguousPeople, People, Person


def person(id: str, name: str | None = None, console: str | None = None) -> Person:
    identities = {"console": console} if console is not None else {}
    return Person(id=PersonId(id), name=name or id.title(), identities=identities)


ANN, BOB = person("ann", "Ann", "ann"), person("bob", "Bob", "bob@corp")


class TestFinding:
    people = People([ANN, BOB])

    def test_by_id(self):
        assert self.people.get(PersonId("ann")) is ANN
        assert self.people.get(PersonId("Ann")) is None

    def test_by_identity_of_a_channel(self):
        assert self.people.by_identity("console", "bob@corp") is BOB

    @pytest.mark.parametrize("identity", ["", "Ann", "ann ", "bob", "a\u200bnn", "аnn"])
    def test_almost_somebody_is_nobody(self, identity: str):
        assert self.people.by_identity("console", identity) is None

    def test_an_identity_of_another_channel_is_nobody(self):
        assert self.people.by_identity("slack", "ann") is None

    def test_names_stand_in_the_order_of_the_configuration(self):
        assert self.people.names([PersonId("bob"), PersonId("ann")]) == ("Ann", "Bob")

    def test_somebody_who_left_stands_under_the_id(self):
        assert self.people.names([PersonId("zoe"), PersonId("bob")]) == ("Bob", "zoe")


class TestLookAlikes:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Ann", "Ann"),
            ("Ann", "ANN"),
            ("Ann", "Аnn"),  # Cyrillic A
            ("Ann", "A\u200bnn"),
            ("Ann", "Ａｎｎ"),
            ("Ann Lee", "AnnLee"),
            ("Ian", "lan"),
            ("Bob", "B0b".replace("0", "о")),  # Cyrillic o
            ("ops-O", "ops-0"),
            ("Zoë", "Zoe\u0308"),
        ],
    )
    def test_names_are_refused(self, one: str, other: str):
        with pytest.raises(AmbiguousPeople, match=r"people\.second and people\.first") as refusal:
            People([person("first", one), person("second", other)])
        assert "name" in str(refusal.value)

    @pytest.mark.parametrize(
        ("one", "other"), [("Ann", "Anna"), ("Kai", "Kal"), ("Ian", "Lan"), ("Zoe", "Zoë"), ("张伟", "张玮")]
    )
    def test_names_that_only_resemble_are_welcome(self, one: str, other: str):
        assert len(People([person("first", one), person("second", other)])) == 2

    def test_identities_are_refused(self):
        with pytest.raises(AmbiguousPeople, match="an identity on console"):
            People([person("ann", console="ann"), person("bob", console="Ann")])

    def test_ids_are_refused(self):
        with pytest.raises(AmbiguousPeople, match="expected an id"):
            People([person("ann", "Ann"), person("ann", "Anna")])

    def test_an_invisible_identity_is_refused(self):
        with pytest.raises(AmbiguousPeople, match="an identity on console that can be seen"):
            People([person("ann", console="\u200b ")])
