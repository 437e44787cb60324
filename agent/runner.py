"""Drives a run in one process, with nothing durable: from a message, or a checkpoint, to a pause or the end.

Owns the driving; `loop.py` says how a run moves and `perform.py` carries out. For runs that survive their process, and
for asking people on their own surfaces, there is the gateway.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never, cast

from pydantic import JsonValue

from agent import gate, told
from agent.checkin import AnyAsk, CheckIn, Question, require_decision
from agent.checkpoint import Checkpoint, dump_checkpoint, load_checkpoint
from agent.decision import Answered, AnyDecision, Approved, Declined, InputReceived
from agent.events import CheckInDecided, CheckInRequested, RunFinished
from agent.ids import AskKey, RunId
from agent.input_request import InputRequest, accept
from agent.loop import advance, pending
from agent.messages import AssistantMessage, ResultsMessage, UserMessage
from agent.moves import (
    AnswerReceived,
    AskEvent,
    CallModel,
    CloseAsk,
    Command,
    Conclude,
    Decided,
    Deny,
    Event,
    Finish,
    Judge,
    MessageReceived,
    OpenAsk,
    Refuse,
    RunTool,
)
from agent.perform import Emit, Executed, Performer
from agent.run import Call, FinishReason, PauseReason, RunState
from agent.spec import AgentSpec

Messages = Sequence[UserMessage | AssistantMessage | ResultsMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that ended. `text` is the model's last words, `transcript` the whole conversation."""

    reason: FinishReason
    text: str
    transcript: tuple[UserMessage | AssistantMessage | ResultsMessage, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A run that waits for people. Keep `checkpoint` (JSON) and resume with decisions for `asks`, by their keys."""

    reason: PauseReason
    asks: tuple[AnyAsk, ...]
    checkpoint: str


Outcome = Finished | Paused


class EditRefused(ValueError):
    """An approver's changed arguments cannot run as they are. The ask is still open.

    `shown_again` holds the arguments as the chain would have them, when it changed the edit further.
    """

    def __init__(self, problem: str, shown_again: dict[str, JsonValue] | None = None) -> None:
        super().__init__(problem)
        self.shown_again = shown_again


async def start(
    spec: AgentSpec, emit: Emit, message: str, *, author: str, history: Messages, tenant: str
) -> Outcome:
    state = RunState(
        run_id=RunId(f"run_{secrets.token_hex(8)}"), agent=spec.name, tenant=tenant, rules=spec.rules
    )
    driver = _Driver(spec, Performer(spec, emit), emit, state, list(history))
    return await driver.drive([MessageReceived(text=message, author=author)])


async def resume(spec: AgentSpec, emit: Emit, checkpoint: str | bytes, decisions: object) -> Outcome:
    """Answer asks of a checkpoint and go on. Whatever is refused leaves the checkpoint answerable."""
    loaded = load_checkpoint(checkpoint, spec)
    answers = _by_ask(loaded, decisions)
    driver = _Driver(
        spec,
        Performer(spec, emit),
        emit,
        loaded.state,
        list(loaded.transcript),
        {ask.key: ask for ask in loaded.asks},
    )
    events = [await driver.event_of(ask, answer) for ask, answer in answers]
    for ask, answer in answers:
        driver.tell_decided(ask, answer)
    return await driver.drive(events)


@dataclass
class _Driver:
    """One run on its way. Commands run side by side; their events are applied one by one."""

    spec: AgentSpec
    performer: Performer
    emit: Emit
    state: RunState
    transcript: list[UserMessage | AssistantMessage | ResultsMessage]
    asks: dict[AskKey, AnyAsk] = field(default_factory=dict[AskKey, AnyAsk])
    underway: set[asyncio.Task[Event]] = field(default_factory=set[asyncio.Task[Event]])

    async def drive(self, events: Sequence[Event]) -> Outcome:
        for command in pending(self.state):
            self._carry_out(command)
        for event in events:
            self._apply(event)
        try:
            await self._until_rest()
        finally:
            for task in self.underway:
                task.cancel()
        return self._outcome()

    async def _until_rest(self) -> None:
        while self.underway:
            done, self.underway = await asyncio.wait(self.underway, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self._apply(task.result())

    def _apply(self, event: Event) -> None:
        step = advance(self.state, event)
        self.state = step.state
        self.transcript.extend(step.messages)
        if isinstance(event, AskEvent) and not isinstance(event, AnswerReceived):
            self.asks.pop(event.ask_key, None)
        for command in step.commands:
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:
        match command:
            case CallModel(delay=delay):
                self._start(self._think(delay))
            case Judge(call_id=call_id):
                self._start(self.performer.judge(self.state, call_id, self.transcript))
            case RunTool(call_id=call_id, attempt=attempt):
                self._start(self.performer.execute(self.state, call_id, attempt, _forget))
            case Conclude(call_id=call_id):
                self._start(self.performer.conclude(self.state, call_id))
            case OpenAsk(ask=ask):
                self._open(ask)
            case CloseAsk(ask_key=key):
                self.asks.pop(key, None)
            case Finish(reason=reason):
                self.asks.clear()
                self.emit(RunFinished(run_id=self.state.run_id, reason=str(reason)))
            case _:
                assert_never(command)

    def _start(self, work: Coroutine[Any, Any, Event]) -> None:
        self.underway.add(asyncio.ensure_future(work))

    async def _think(self, delay: float) -> Event:
        if delay:
            await asyncio.sleep(delay)
        return await self.performer.think(self.state, tuple(self.transcript))

    def _open(self, ask: AnyAsk) -> None:
        self.asks[ask.key] = ask
        if isinstance(ask, CheckIn):
            self.emit(CheckInRequested.of(self.state.run_id, ask))

    async def event_of(self, ask: AnyAsk, decision: AnyDecision) -> Event:
        """The event that a decision becomes. Raises for one that the ask does not take, before anything moves."""
        if isinstance(decision, InputReceived):
            accept(cast(InputRequest, self._call(ask).ask), decision)
            return AnswerReceived(call_id=ask.call_id, ask_key=ask.key, reply=decision)
        if isinstance(decision, Approved) and decision.arguments is not None:
            revised = await self._revise(ask, decision.arguments)
            return Decided(
                call_id=ask.call_id,
                ask_key=ask.key,
                decision=decision,
                action=revised.action,
                sentence=revised.sentence,
            )
        event = Decided(call_id=ask.call_id, ask_key=ask.key, decision=decision)
        advance(self.state, event)
        return event

    async def _revise(self, ask: AnyAsk, arguments: dict[str, JsonValue]) -> gate.Revised:
        revised = await gate.revise(self.spec, self.state, self._call(ask), arguments, self.emit)
        match revised:
            case gate.Revised(transformed=True, action=action):
                raise EditRefused("a rule changed the edited arguments: look at them again", action.arguments)
            case gate.Revised():
                return revised
            case Deny(tell=tell):
                raise EditRefused(tell or told.DENIED_BY_POLICY)
            case Refuse(problem=problem):
                raise EditRefused(problem)

    def tell_decided(self, ask: AnyAsk, decision: AnyDecision) -> None:
        if isinstance(ask, CheckIn) and isinstance(decision, Approved | Declined):
            self.emit(CheckInDecided.of(self.state.run_id, ask, decision))

    def _call(self, ask: AnyAsk) -> Call:
        return cast(Call, self.state.call(ask.call_id))

    def _outcome(self) -> Outcome:
        if self.state.finish is not None:
            return Finished(
                reason=self.state.finish,
                text=self.state.text,
                transcript=tuple(self.transcript),
                detail=self.state.detail,
            )
        reason = cast(PauseReason, self.state.pause)
        asks = tuple(self._current(ask) for ask in self.asks.values())
        return Paused(reason=reason, asks=asks, checkpoint=dump_checkpoint(self.state, self.transcript, asks))

    def _current(self, ask: AnyAsk) -> AnyAsk:
        """The ask with the values accepted so far."""
        kept = self._call(ask).ask
        return kept if isinstance(kept, InputRequest) else ask


def _by_ask(checkpoint: Checkpoint, decisions: object) -> list[tuple[AnyAsk, AnyDecision]]:
    """Match decisions to open asks. One decision alone answers the only ask."""
    asks = {ask.key: ask for ask in checkpoint.asks}
    if not isinstance(decisions, Mapping):
        if len(asks) != 1:
            raise ValueError(
                f"{len(asks)} asks are open: pass decisions as a mapping by ask key {sorted(asks)}"
            )
        decisions = {next(iter(asks)): decisions}
    given = cast(Mapping[AskKey, object], decisions)
    unknown = [key for key in given if key not in asks]
    if unknown or not given:
        raise ValueError(f"expected decisions for some of {sorted(asks)}, found {sorted(map(str, given))}")
    return [(asks[key], _answer(asks[key], given[key])) for key in given]


def _answer(ask: AnyAsk, given: object) -> AnyDecision:
    """A plain question takes any value; everything else takes a decision."""
    if isinstance(ask, Question) and not isinstance(given, Answered):
        return Answered(by="caller", answer=cast(str, given))
    return require_decision(ask, given)


def _forget(late: Executed) -> None:
    """In one process nobody is left to tell: the attempt was given up and the outcome question is open."""
