"""An approver's changed arguments: checked against the tool's schema, then through the agent's chain again.

Owns the checks and their refusal. Stores nothing: the desk makes the new revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from agent import gate
from agent.action import Action
from agent.canonical import NotFaithful, copy_faithfully
from agent.checkin import CheckIn
from agent.redaction import LockedFieldChanged, restore
from agent.spec import AgentSpec
from agent.tools import check_schema
from gateway.ask import AskRecord
from gateway.errors import CallerError
from gateway.session import RunRecord


class EditRefused(CallerError):
    """The changed arguments cannot run. The ask is untouched and still open.

    `fields` says for each field what is expected; `""` is about the arguments as a whole.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name or 'arguments'}: {expected}" for name, expected in fields.items()))
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Revision:
    """What would run after an edit. `transformed`: the chain changed it further, so it has to be shown again."""

    action: Action
    sentence: str
    transformed: bool


@dataclass(frozen=True, slots=True)
class Editor:
    """Judges edits by the agents' own gates."""

    agents: Mapping[str, AgentSpec]
    emit: Callable[[object], None]

    async def revise(
        self, record: AskRecord, run: RunRecord, arguments: dict[str, JsonValue]
    ) -> Revision | None:
        """What the edited arguments would run; None when nothing was changed. Raises EditRefused."""
        spec, call = self.agents.get(record.agent), run.state.call(record.ask.call_id)
        if not isinstance(record.ask, CheckIn) or spec is None or call is None:
            raise EditRefused({"": "only a check-in of an agent that this gateway serves can be edited"})
        edited = _unlocked(arguments, record.ask)
        problems = check_schema(record.ask.schema, edited)
        if problems:
            raise EditRefused(problems)
        revised = await gate.revise(spec, run.state, call, edited, self.emit)
        match revised:
            case gate.Revised(action=action, sentence=sentence, transformed=transformed):
                return None if action.digest == record.digest else Revision(action, sentence, transformed)
            case gate.Deny(tell=tell):
                raise EditRefused({"": tell or "a rule does not allow these arguments"})
            case gate.Refuse(problem=problem):
                raise EditRefused({"": problem})


def _unlocked(arguments: dict[str, JsonValue], ask: CheckIn) -> dict[str, JsonValue]:
    """The edit with the redacted fields as they were: nobody saw them, so nobody can have changed them."""
    try:
        edited = copy_faithfully(arguments)
        if not isinstance(edited, dict):
            raise NotFaithful("arguments must be an object")
        return restore(edited, ask.action.arguments, ask.redact)
    except NotFaithful as error:
        raise EditRefused({"": str(error)}) from error
    except LockedFieldChanged as error:
        raise EditRefused({error.path: "hidden from you, so it can't be changed"}) from error
