"""The documents say what is true: the README's agent runs, and the diagrams are the tables'."""

from __future__ import annotations

import re
from pathlib import Path

from docs.diagrams import DOCUMENT, drawn
from signoff import Agent, Approved, Paused
from tests.support.office import first_calls

HOME = Path(__file__).parents[1]


def snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (HOME / "README.md").read_text(encoding="utf-8"), re.DOTALL)


async def test_the_readme_agent_asks_above_a_thousand_and_runs_once_approved() -> None:
    declared, _ = snippets()
    names: dict[str, object] = {}
    code = declared.replace("from signoff import Agent, Claude, tool", "from signoff import Agent, tool")
    exec(code.replace("Claude()", "model"), names | {"model": _model(5000)}, names)  # noqa: S102  (our own README)
    agent = names["agent"]
    assert isinstance(agent, Agent)
    outcome = await agent.run("Refund $5,000 on order A-1042")
    assert isinstance(outcome, Paused)
    ended = await agent.resume(outcome.checkpoint, Approved(by="ann"))
    assert not isinstance(ended, Paused)
    assert ended.text == "refunded 5000"


def _model(amount: int) -> object:
    return first_calls(("issue_refund", {"order_id": "A-1042", "amount": amount}))


def test_the_diagrams_are_the_tables() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == drawn(text), "run `make diagrams`"


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for document in (HOME / "README.md", *(HOME / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
