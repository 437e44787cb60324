"""Listed persons may decide; everybody else is told who can."""

from __future__ import annotations

import pytest

from gateway.authority import Authority, GroupsNotSupported, NobodyMayDecide, NotAllowed, UnknownApprover
from gateway.ids import PersonId
from gateway.people import People, Person
from tests.support.asks import ask_record

ANN, BOB, MIA = (Person(id=PersonId(id), name=id.title()) for id in ("ann", "bob", "mia"))
authority = Authority(People([ANN, BOB, MIA]))


class TestResolve:
    def test_persons(self):
        assert authority.resolve(["ann", "bob", "ann"]) == {"ann", "bob"}

    def test_an_empty_list_is_refused(self):
        with pytest.raises(NobodyMayDecide, match="at least one approver"):
            authority.resolve([])

    @pytest.mark.parametrize("reference", ["zoe", "Ann", "ann ", "", "*"])
    def test_somebody_unknown_is_refused(self, reference: str):
        with pytest.raises(UnknownApprover, match="expected one of ann, bob, mia"):
            authority.resolve(["ann", reference])

    def test_a_group_is_refused_not_ignored(self):
        with pytest.raises(GroupsNotSupported, match="list them one by one"):
            authority.resolve(["ann", "group:finance"])


class TestCheck:
    def test_an_approver_may(self):
        authority.check(ask_record(), ANN.id)

    @pytest.mark.parametrize("person", ["mia", "zoe", "Ann", "", "group:finance"])
    def test_anybody_else_may_not_and_is_told_who_can(self, person: str):
        with pytest.raises(NotAllowed, match="Ann or Bob can") as refusal:
            authority.check(ask_record(), PersonId(person))
        assert refusal.value.who_can == ("Ann", "Bob")

    def test_an_approver_who_is_no_longer_configured_may_not(self):
        with pytest.raises(NotAllowed) as refusal:
            Authority(People([ANN])).check(ask_record(), BOB.id)
        assert refusal.value.who_can == ("Ann",)

    @pytest.mark.parametrize("approvers", [(), ("zoe",), ("group:finance",)])
    def test_where_nobody_is_left_nobody_may(self, approvers: tuple[str, ...]):
        with pytest.raises(NotAllowed, match="nobody who is configured can") as refusal:
            authority.check(ask_record(approvers=approvers), ANN.id)
        assert refusal.value.who_can == ()

    def test_a_requester_who_is_listed_may_while_four_eyes_is_off(self):
        authority.check(ask_record(requesters=(ANN.id,)), ANN.id)
