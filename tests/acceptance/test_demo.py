"""`signoff demo`, as a newcomer runs it."""

from __future__ import annotations

from tests.acceptance.conftest import Shell


def test_approve(shell: Shell) -> None:
    printed = shell.run("demo", "--approve")
    assert "Refund 5000 USD on order A-1042?" in printed
    assert "Agent says (not checked):" in printed
    assert "✅ Approved: Refund 5000 USD on order A-1042\n" in printed
    assert "refunded 5000" in printed
    assert [word for word in ("ask", "approved", "used", "executed") if f" {word} " not in printed] == []
    assert len(shell.ledger()) == 1


def test_decline(shell: Shell) -> None:
    printed = shell.run("demo", "--decline", "--note", "not this week")
    assert "🚫 Declined: Refund 5000 USD on order A-1042" in printed
    assert "declined by human: not this week" in printed
    assert " used " not in printed
    assert shell.ledger() == []


def test_edit(shell: Shell) -> None:
    printed = shell.run("demo", "--edit", "amount=4200")
    assert "✅ Approved with changes: Refund 4200 USD on order A-1042" in printed
    assert "Amount 5000 → 4200" in printed
    assert "refunded 4200" in printed
    assert '"amount": 4200' in shell.ledger()[0]


def test_an_edit_that_does_not_fit_is_told(shell: Shell) -> None:
    assert "A whole number from 1 to 10000." in shell.run("demo", "--edit", "amount=lots", expect=1)
    assert "expected FIELD=VALUE" in shell.run("demo", "--edit", "price=3", expect=1)
    assert shell.ledger() == []


def test_an_answer_is_needed(shell: Shell) -> None:
    assert "--approve, --decline or --edit" in shell.run("demo", expect=2)


def test_another_agent(shell: Shell) -> None:
    notes = "Weekly status: shipped the importer, next up the exporter. Save it and post it to #team."
    printed = shell.run("demo", "--approve", "--agent", "coworker", "--message", notes)
    assert "post_to_channel" in printed
