"""`signoff chat` at a terminal, and the same run from other processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import pexpect
import pytest

from tests.acceptance.conftest import COMMAND, PATIENCE, Shell

REQUEST = "Refund $5,000 on order A-1042, it arrived broken"
CHOICES = r"\[v\] details > "


def at_the_ask(shell: Shell) -> pexpect.spawn:
    chat = shell.talk("chat", "refunds")
    chat.expect("you> ")
    chat.sendline(REQUEST)
    chat.expect(r"Refund 5000 USD on order A-1042\?")
    chat.expect(CHOICES)
    return chat


def leave(chat: pexpect.spawn) -> None:
    chat.sendline("/quit")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0


def test_approve_after_a_second_thought(shell: Shell) -> None:
    chat = at_the_ask(shell)
    chat.sendline("a")
    chat.expect("It runs as soon as you approve")
    chat.sendline("n")
    chat.expect(CHOICES)
    assert shell.ledger() == []
    chat.sendline("a")
    chat.expect(r"\[y/n\] ")
    chat.sendline("y")
    chat.expect("Refunded 5000 USD")
    chat.expect("you> ")
    leave(chat)
    assert len(shell.ledger()) == 1


def test_edit_field_by_field(shell: Shell) -> None:
    chat = at_the_ask(shell)
    chat.sendline("e")
    chat.expect(r"Order \[A-1042\]: ")
    chat.sendline("")
    chat.expect(r"Amount \[5000\]: ")
    chat.sendline("lots")
    chat.expect("A whole number from 1 to 10000")
    chat.expect(r"Amount \[5000\]: ")
    chat.sendline("4200")
    for _ in range(2):
        chat.expect(r"\]: ")
        chat.sendline("")
    chat.expect(r"\[y/n\] ")
    chat.sendline("y")
    chat.expect("Amount 5000 → 4200")
    chat.expect("Refunded 4200 USD")
    chat.expect("you> ")
    leave(chat)


def test_decline_with_a_reason(shell: Shell) -> None:
    chat = at_the_ask(shell)
    chat.sendline("d")
    chat.expect("nothing is run")
    chat.sendline("not this week")
    chat.expect("Declined")
    chat.expect("Not done")
    chat.expect("you> ")
    leave(chat)
    assert shell.ledger() == []


def test_missing_details_are_asked_for(shell: Shell) -> None:
    chat = shell.talk("chat", "refunds")
    chat.expect("you> ")
    chat.sendline("I want a refund")
    chat.expect("Which order, and how much")
    chat.expect("A-1042: ")
    chat.sendline("A-77")
    chat.expect("10000: ")
    chat.sendline("12")
    chat.expect(": ")
    chat.sendline("")
    chat.expect("Refunded 12 USD on order A-77")
    chat.expect("you> ")
    leave(chat)


def test_leaving_and_coming_back(shell: Shell) -> None:
    chat = at_the_ask(shell)
    chat.sendline("/quit")
    chat.expect("It waits")
    chat.expect(pexpect.EOF)
    chat = shell.talk("chat", "refunds")
    chat.expect("It goes on here")
    chat.expect(CHOICES)
    chat.sendline("a")
    chat.expect(r"\[y/n\] ")
    chat.sendline("y")
    chat.expect("Refunded 5000 USD")
    chat.expect("you> ")
    leave(chat)


def test_decided_from_another_process_after_the_first_was_killed(shell: Shell) -> None:
    chat = at_the_ask(shell)
    chat.kill(signal.SIGKILL)
    chat.close()
    assert "Refund 5000 USD on order A-1042?" in shell.run("asks", "list")
    assert "waits for approval" in shell.run("runs", "list")
    printed = shell.run("asks", "decide", "a_", "--approve")
    assert "Refunded 5000 USD" in printed
    assert len(shell.ledger()) == 1
    rows = [json.loads(line) for line in shell.run("journal", "tail", "--json").splitlines()]
    (approved,) = [row for row in rows if row["kind"] == "approved"]
    assert approved["assurance"] == "operator"
    assert "Nothing waits" in shell.run("asks", "list")


def test_decided_from_another_process_while_somebody_thinks(shell: Shell) -> None:
    chat = at_the_ask(shell)
    shell.run("asks", "decide", "a_", "--decline", "--note", "no")
    chat.expect("Declined")
    chat.expect("you> ")
    leave(chat)
    assert shell.ledger() == []


def test_stopped_from_another_process(shell: Shell) -> None:
    chat = at_the_ask(shell)
    assert "stops" in shell.run("runs", "stop", "run_")
    chat.expect("Withdrawn")
    chat.expect("Stopped")
    chat.expect("you> ")
    leave(chat)
    assert shell.ledger() == []


def test_answers_that_do_not_fit_are_refused(shell: Shell) -> None:
    chat = at_the_ask(shell)
    assert "say one answer" in shell.run("asks", "decide", "a_", expect=2)
    assert "expected one" in shell.run("asks", "decide", "zzz", "--approve", expect=2)
    assert "A whole number" in shell.run("asks", "decide", "a_", "--edit", "amount=x", expect=2)
    assert "takes" in shell.run("asks", "decide", "a_", "--answer", "yes", expect=1)
    leave_open(chat)


def leave_open(chat: pexpect.spawn) -> None:
    chat.sendline("/quit")
    chat.expect(pexpect.EOF)
    chat.close()


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed: apt-get install tmux")
def test_in_a_terminal_multiplexer(shell: Shell) -> None:
    """A person's own terminal: type a request, edit the amount, approve, read what was refunded."""
    name = f"signoff-{os.getpid()}"
    exports = " ".join(
        f"{key}={value!r}"
        for key, value in shell.environment.items()
        if key.startswith(("SIGNOFF", "PYTHONPATH"))
    )
    start = f"cd {shell.folder} && env {exports} {' '.join(COMMAND)} chat refunds"
    _tmux("new-session", "-d", "-s", name, "-x", "100", "-y", "50", start)
    try:
        _read(name, "you>")
        _type(name, REQUEST)
        _read(name, "details >")
        _type(name, "e")
        for prompt, answer in (("Order [", ""), ("Amount [", "4200"), ("Currency [", ""), ("Reason [", "")):
            _read(name, prompt)
            _type(name, answer)
        _read(name, "[y/n]")
        _type(name, "y")
        screen = _read(name, "efunded 4200")
        assert "Amount 5000 → 4200" in screen
    finally:
        _tmux("kill-session", "-t", name)


def _tmux(*words: str) -> str:
    return subprocess.run(["tmux", *words], capture_output=True, text=True, check=True, timeout=10).stdout


def _type(name: str, line: str) -> None:
    _tmux("send-keys", "-t", name, "-l", line)
    _tmux("send-keys", "-t", name, "Enter")


def _read(name: str, expected: str) -> str:
    """The screen, once it shows what is expected. There is no event to wait for: look, and look again."""
    deadline = time.monotonic() + PATIENCE
    while True:
        screen = _tmux("capture-pane", "-p", "-t", name)
        if expected in screen:
            return screen
        assert time.monotonic() < deadline, f"{expected!r} never appeared on:\n{screen}"
        time.sleep(0.02)
