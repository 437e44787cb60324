"""A model that needs no key: plain rules over what a person really typed.

Owns how rules are asked and how their pieces become a reply. Everything is read from the transcript and nothing is
remembered, so a resumed process goes on where the last one stopped, with the same ids.

    def greet(conversation):
        if "hello" in conversation.said.lower():
            return say("Hello.")

    model = Scripted([greet, otherwise("I only know hello.")])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from agent.messages import (
    AssistantMessage,
    ResultsMessage,
    Text,
    ToolResult,
    ToolUse,
    Transcript,
    UserMessage,
    check_pairing,
)
from agent.model import ModelError, ModelFailure, Prompt, Reply, StopReason


@dataclass(frozen=True, slots=True)
class Proposed:
    """A call that a rule wants. The model gives it its id."""

    tool: str
    arguments: dict[str, JsonValue]


Piece = Text | Proposed


def say(text: str) -> Text:
    """Words of a reply."""
    return Text(text)


def call(tool: str, /, **arguments: JsonValue) -> Proposed:
    """A call of a reply. A rule may return several; they are judged together."""
    return Proposed(tool, arguments)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call, beside the call as it was proposed."""

    use: ToolUse
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Exchange:
    """A person's message, and what came of the calls that it led to, oldest first."""

    said: str
    outcomes: tuple[Outcome, ...] = ()

    def of(self, tool: str) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.use.name == tool)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A transcript as a rule sees it, from its end. It never reads further back than a rule asks it to."""

    transcript: Transcript = field(repr=False)

    @property
    def said(self) -> str:
        """The person's last message."""
        return self.now.said

    @property
    def now(self) -> Exchange:
        """The person's last message, and all that came of it so far."""
        return next(self.exchanges(), Exchange(""))

    @property
    def news(self) -> tuple[Outcome, ...]:
        """The results that just came in; none when a person spoke last."""
        end = len(self.transcript) - 1
        return _outcomes(self.transcript, end) if end > 0 else ()

    def exchanges(self) -> Iterator[Exchange]:
        """One for each message of a person, newest first."""
        outcomes: list[Outcome] = []
        for place in range(len(self.transcript) - 1, -1, -1):
            message = self.transcript[place]
            if isinstance(message, ResultsMessage):
                outcomes[:0] = _outcomes(self.transcript, place)
            elif isinstance(message, UserMessage):
                yield Exchange(message.text, tuple(outcomes))
                outcomes = []


Rule = Callable[[Conversation], Piece | Sequence[Piece] | None]
"""Looks at a conversation and replies, or returns None to leave it to the next rule."""


def otherwise(text: str) -> Rule:
    """The rule that always has an answer. It goes last."""
    return lambda conversation: say(text)


@dataclass(frozen=True)
class Scripted:
    """A model made of rules; the first that replies is the reply."""

    rules: Sequence[Rule]
    name: str = "scripted"

    async def reply(self, prompt: Prompt) -> Reply:
        _check_end(prompt.messages)
        conversation = Conversation(prompt.messages)
        for rule in self.rules:
            pieces = rule(conversation)
            if pieces:
                return _reply(pieces if isinstance(pieces, Sequence) else (pieces,), len(prompt.messages))
        raise ModelError(
            ModelFailure.REFUSED_REQUEST,
            f"none of the {len(self.rules)} rules of {self.name!r} replies here: end them with `otherwise(...)`",
        )


def _reply(pieces: Sequence[Piece], place: int) -> Reply:
    """The reply that will be message `place` of the transcript, which makes its ids unique in it."""
    content = tuple(
        ToolUse(f"call_{place}_{number}", piece.tool, piece.arguments)
        if isinstance(piece, Proposed)
        else piece
        for number, piece in enumerate(pieces)
    )
    message = AssistantMessage(content)
    return Reply(message, StopReason.TOOL_USE if message.tool_uses else StopReason.END_TURN)


def _check_end(transcript: Transcript) -> None:
    """Refuse what a real model refuses: nothing said yet, or calls without their results.

    Only the end, which is all that a rule's reply can depend on: reading ten thousand messages at every step to find
    what an earlier step would have found is not what this model is for.
    """
    if not transcript or not isinstance(transcript[0], UserMessage):
        raise ModelError(
            ModelFailure.REFUSED_REQUEST, "expected a conversation that a person's message starts"
        )
    last = transcript[-1]
    try:
        check_pairing(transcript[-2:] if isinstance(last, ResultsMessage) else [last])
    except ValueError as error:
        raise ModelError(ModelFailure.REFUSED_REQUEST, str(error)) from error


def _outcomes(transcript: Transcript, place: int) -> tuple[Outcome, ...]:
    """The results in message `place`, if it holds any, each with the call that it answers."""
    message, before = transcript[place], transcript[place - 1]
    if not isinstance(message, ResultsMessage) or not isinstance(before, AssistantMessage):
        return ()
    uses = {use.id: use for use in before.tool_uses}
    return tuple(
        Outcome(uses[each.tool_use_id], each) for each in message.results if each.tool_use_id in uses
    )
