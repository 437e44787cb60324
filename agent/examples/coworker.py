"""An agent that writes the weekly status from your notes. It saves drafts freely; posting, a person decides.

    signoff chat coworker

`agent` needs no key: rules read what was typed (`coworker_rules.py`). `build(resolve("claude"))` is the same agent on
Claude. Drafts and posts stand in `.signoff/coworker/`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent.agent import Agent
from agent.examples.coworker_rules import RULES
from agent.examples.folder import folder
from agent.model import Model
from agent.scripted import Scripted
from agent.tools import tool

SYSTEM = """\
You are a coworker who writes the team's weekly status.
Use only what the notes say: what was done, what comes next, what is blocked.
Save a draft first. Then post it, unless you were told to keep it as a draft.
A person decides about every post; you need not ask for permission in words.
When a post was declined, the draft stays and nothing is posted.
"""

NAME = "^[a-z0-9][a-z0-9-]{0,59}$"
CHANNEL = "^#[a-z0-9][a-z0-9_-]{0,79}$"


@tool
def save_draft(
    name: Annotated[str, Field(pattern=NAME, description="In lower case, for example weekly-status")],
    text: Annotated[str, Field(min_length=1, max_length=20_000)],
) -> str:
    """Save a draft, in place of an earlier one of the same name. Nobody else sees it."""
    (folder("coworker/drafts") / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return f"saved draft {name}"


@tool(ask="Post this to {channel}?", check_in="always")
def post_to_channel(
    channel: Annotated[str, Field(title="Channel", pattern=CHANNEL)],
    text: Annotated[str, Field(title="Text", min_length=1, max_length=20_000)],
) -> str:
    """Post a text to a channel, for everybody in it to read."""
    path = folder("coworker/channels") / f"{channel.removeprefix('#')}.md"
    with path.open("a", encoding="utf-8") as posts:
        posts.write(text + "\n\n")
    return f"posted to {channel}"


def build(model: Model | None = None) -> Agent:
    """The agent on a model; without one, on rules that need no key."""
    return Agent(
        name="coworker",
        model=model or Scripted(RULES, name="scripted-coworker"),
        system=SYSTEM,
        tools=[save_draft, post_to_channel],
    )


agent = build()
