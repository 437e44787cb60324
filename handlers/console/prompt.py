"""Asking a person for an answer in a terminal: keys for the choices, a line for the words.

Owns the dialogue. It returns a decision and submits nothing; None means that whoever was asked left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pydantic import JsonValue
from rich.text import Text

from agent.checkin import CheckIn, OutcomeQuestion, Question
from agent.decision import (
    Answered,
    AnyDecision,
    Approved,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    InputReceived,
    RunAgain,
)
from agent.input_request import InputField, InputRequest
from gateway.ask import AskRecord
from gateway.form import FieldError, FormField, field_of, fields_of, read_field
from gateway.ids import PersonId
from gateway.texts import text
from gateway.view import AskView
from handlers.console.terminal import Terminal


class Left(Exception):
    """Nobody is at the terminal any more."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One person, asked at one terminal."""

    terminal: Terminal
    person: PersonId
    confirm: bool = True

    async def answer(self, record: AskRecord, view: AskView) -> AnyDecision | None:
        """What the person decides; None if they left."""
        try:
            match record.ask:
                case CheckIn() as ask:
                    return await self._check_in(ask, view)
                case Question() as ask:
                    return await self._question(ask)
                case InputRequest() as ask:
                    return await self._input(ask)
                case OutcomeQuestion():
                    return await self._outcome(view)
                case _:
                    assert_never(record.ask)
        except Left:
            return None

    # --- consent ------------------------------------------------------------------------------------------------

    async def _check_in(self, ask: CheckIn, view: AskView) -> AnyDecision:
        while True:
            choice = await self._choose({"a": "approve", "e": "edit…", "d": "decline…", "v": "details"})
            match choice:
                case "a":
                    if await self._confirmed(text("confirm", question=view.headline)):
                        return Approved(by=self.person)
                case "e":
                    edited = await self._edit(ask)
                    if edited is not None:
                        return Approved(by=self.person, arguments=edited)
                case "d":
                    return await self._decline()
                case _:
                    self._details(ask)

    async def _decline(self) -> Declined:
        self._say(text("if-declined"))
        return Declined(by=self.person, note=(await self._line(f"{text('reason')}: ")).strip())

    async def _edit(self, ask: CheckIn) -> dict[str, JsonValue] | None:
        """Field by field; Enter keeps what the agent asked for. None: nothing was changed after all."""
        edited = dict(ask.action.arguments)
        for field in fields_of(ask):
            if field.locked:
                self._say(f"{field.label}: {text('cannot-change')}")
                continue
            await self._edit_field(field, edited)
        changed = edited != ask.action.arguments
        if changed and await self._confirmed(f"{text('approve-with-changes')}? {_summary(ask, edited)}"):
            return edited
        if not changed:
            self._say("Nothing changed.")
        return None

    async def _edit_field(self, field: FormField, edited: dict[str, JsonValue]) -> None:
        while True:
            typed = await self._line(f"{field.label} [{field.shown}]: ")
            if not typed:
                return
            try:
                edited[field.name] = read_field(field, typed)
                return
            except FieldError as error:
                self._say(f"  {error}")

    def _details(self, ask: CheckIn) -> None:
        self._say("What the agent had read:")
        read = ask.evidence.get("read")
        for unit in read if isinstance(read, list) else []:
            if isinstance(unit, dict):
                self._say(f"  {unit.get('channel')}: {unit.get('summary')}")
        self._say(f"digest {ask.action.digest}")

    # --- everything else ----------------------------------------------------------------------------------------

    async def _question(self, ask: Question) -> Answered:
        for number, option in enumerate(ask.options, 1):
            self._say(f"  {number}. {option}")
        while True:
            hint = "a number, or your own words" if ask.options else "your answer"
            typed = (await self._line(f"{hint}: ")).strip()
            if typed.isdigit() and 1 <= int(typed) <= len(ask.options):
                return Answered(by=self.person, answer=ask.options[int(typed) - 1])
            if typed:
                return Answered(by=self.person, answer=typed)

    async def _input(self, ask: InputRequest) -> AnyDecision:
        """Field by field; Enter leaves one for later, `/cancel` ends it."""
        self._say("Enter leaves a field for later, /cancel gives it up.")
        values: dict[str, JsonValue] = {}
        for asked in (f for f in ask.fields if f.id not in ask.values):
            typed = await self._value(asked)
            if typed == _CANCEL:
                return InputCancelled(by=self.person, request_id=ask.request_id)
            if typed is not None:
                values[asked.id] = typed
        return InputReceived(by=self.person, request_id=ask.request_id, values=values)

    async def _value(self, asked: InputField) -> JsonValue:
        field = field_of(asked)
        while True:
            typed = (await self._line(f"{field.label}: ")).strip()
            if not typed or typed == _CANCEL:
                return typed or None
            try:
                return read_field(field, typed)
            except FieldError as error:
                self._say(f"  {error}")

    async def _outcome(self, view: AskView) -> AnyDecision:
        again = text("outcome-safe" if view.safe else "outcome-unsafe")
        while True:
            choice = await self._choose({"h": text("it-happened"), "r": again, "s": text("stop")})
            match choice:
                case "h":
                    return Happened(by=self.person)
                case "s":
                    return GivenUp(by=self.person)
                case _:
                    if await self._confirmed(text("confirm-again", question=view.action)):
                        return RunAgain(by=self.person)

    # --- the terminal -------------------------------------------------------------------------------------------

    async def _choose(self, choices: dict[str, str]) -> str:
        shown = "  ".join(f"[{key}] {label}" for key, label in choices.items())
        while True:
            typed = (await self._line(f"{shown} > ")).strip().lower()
            if typed[:1] in choices:
                return typed[:1]

    async def _confirmed(self, question: str) -> bool:
        if not self.confirm:
            return True
        return (await self._line(f"{question} [y/n] ")).strip().lower() in ("y", "yes")

    async def _line(self, prompt: str) -> str:
        typed = await self.terminal.ask(prompt)
        if typed is None or typed.strip() in QUIT:
            raise Left
        return typed

    def _say(self, line: str) -> None:
        self.terminal.show(Text(line))


QUIT = ("/quit", "/exit")
"""What leaves a conversation, wherever it is."""
_CANCEL = "/cancel"


def _summary(ask: CheckIn, edited: dict[str, JsonValue]) -> str:
    before = ask.action.arguments
    changed = (
        f"{name} {before.get(name)} → {value}" for name, value in edited.items() if before.get(name) != value
    )
    return ", ".join(changed)
