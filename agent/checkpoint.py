"""A paused run as one JSON text, for a run that is driven in process: state, transcript, open asks.

Owns its form and the refusal of one that this agent cannot resume. The text a caller holds is never changed: a refused
resume can be tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from agent.action import verify
from agent.checkin import AnyAsk, Ask, CheckIn, OutcomeQuestion
from agent.messages import (
    AssistantMessage,
    Message,
    ResultsMessage,
    UnpairedToolUse,
    UserMessage,
    check_pairing,
)
from agent.run import STATE_VERSION, RunState
from agent.spec import AgentSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything that a fresh process needs beside the agent itself."""

    state: RunState
    transcript: tuple[Message, ...]
    asks: tuple[Ask, ...]


class CheckpointRefused(ValueError):
    """This agent cannot resume this checkpoint. Nothing was executed; the checkpoint is as it was."""


_CHECKPOINT: TypeAdapter[Checkpoint] = TypeAdapter(Checkpoint)


def dump_checkpoint(
    state: RunState,
    transcript: Sequence[UserMessage | AssistantMessage | ResultsMessage],
    asks: Sequence[AnyAsk],
) -> str:
    checkpoint = Checkpoint(state=state, transcript=tuple(transcript), asks=tuple(asks))
    return _CHECKPOINT.dump_json(checkpoint, exclude_none=True).decode()


def load_checkpoint(text: str | bytes, spec: AgentSpec) -> Checkpoint:
    """Read a checkpoint for this agent. Raises CheckpointRefused, saying what does not fit."""
    try:
        checkpoint = _CHECKPOINT.validate_json(text)
        _check_transcript(checkpoint)
    except (ValidationError, UnpairedToolUse) as error:
        raise CheckpointRefused("this is not a checkpoint of a paused run, or it was damaged") from error
    for problem in _misfits(checkpoint, spec):
        raise CheckpointRefused(f"{problem}. Nothing was executed; the checkpoint is unchanged")
    return checkpoint


def _check_transcript(checkpoint: Checkpoint) -> None:
    """All but the last reply is paired; that one's calls are what the state is about."""
    said = checkpoint.transcript
    last = said[-1] if said else None
    check_pairing(said[:-1] if isinstance(last, AssistantMessage) else said)


def _misfits(checkpoint: Checkpoint, spec: AgentSpec) -> list[str]:
    state = checkpoint.state
    found: list[str] = []
    if state.version > STATE_VERSION:
        found.append(f"the checkpoint's version {state.version} is newer than this library's {STATE_VERSION}")
    if state.agent != spec.name:
        found.append(f"the checkpoint is of agent {state.agent!r}, this is {spec.name!r}")
    if state.pause is None:
        found.append("the checkpoint's run is not paused")
    return found + [problem for ask in checkpoint.asks for problem in _ask_misfits(ask, spec)]


def _ask_misfits(ask: AnyAsk, spec: AgentSpec) -> list[str]:
    if not isinstance(ask, CheckIn | OutcomeQuestion):
        return []
    tool = spec.toolbox.get(ask.action.tool)
    if tool is None:
        return [f"the tool {ask.action.tool!r} no longer exists"]
    if tool.schema_hash != ask.action.schema_hash:
        return [f"the tool {ask.action.tool!r} changed since it was shown"]
    if not verify(ask.action):
        return [f"the arguments of {ask.action.tool!r} do not match what was shown"]
    return []
