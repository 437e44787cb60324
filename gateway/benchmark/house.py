"""The gateway under measurement, as its benchmark sees it, and the agents that it serves there.

Owns the agents. The roof builds the gateway (`gateway/cli/bench.py`): this package must not know it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from agent.agent import Agent
from agent.decision import Approved
from agent.ids import RunId
from agent.messages import AssistantMessage, ResultsMessage, Text, ToolUse
from agent.model import Prompt, Reply, StopReason
from agent.spec import AgentSpec
from agent.tools import tool
from gateway.benchmark import work
from gateway.benchmark.witness import Witness
from gateway.desk import Desk, Submission
from gateway.ids import AskId, PersonId
from gateway.intake import Inbound, Intake
from gateway.session import Message, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A running gateway: what a channel would use of it."""

    intake: Intake
    desk: Desk
    witness: Witness

    async def say(self, agent: str, session: str, message: str) -> RunId:
        received = await self.intake.receive(
            Inbound(
                agent=agent,
                session_key=session,
                message=Message(id=message, text=work.REQUEST, author="Mia", person=PersonId("mia")),
                origin=Origin(),
            )
        )
        if received.run is None:
            raise LookupError(f"session {session} was busy: every message here is meant to start a run")
        return received.run

    async def approve(self, ask: AskId) -> None:
        await self.desk.submit(
            Submission(
                ask_id=ask,
                revision=1,
                person=PersonId(work.APPROVER),
                decision=Approved(by=work.APPROVER),
                channel="bench",
                operation=f"click:{ask}",
            )
        )

    async def pause(self, session: str, message: str = "m1") -> tuple[RunId, AskId]:
        """From the message to the stored ask."""
        run = await self.say(GATED, session, message)
        return run, await self.witness.asked(run)

    async def resume(self, run: RunId, ask: AskId) -> None:
        """From the click to the end of the run."""
        await self.approve(ask)
        await self.witness.ended(run)


OpenHouse = Callable[[AgentSpec], AbstractAsyncContextManager[House]]
"""Builds a gateway that serves this agent on the benchmark's store, and ends it."""

GATED, FREE = "gated", "free"


@tool(check_in="always")
async def refund(order: str, amount: int) -> str:
    """Refund an order."""
    return work.refunded(order, amount)


@tool
async def look_up(order: str) -> str:
    """Look an order up."""
    return work.refunded(order, 0)


def gated_agent() -> Agent:
    """Proposes one refund, then ends."""
    return Agent(name=GATED, model=_ProposesOnce(), tools=[refund])


def free_agent(pace: Pace) -> Agent:
    """Looks something up in every turn, without asking anybody."""
    return Agent(name=FREE, model=pace, tools=[look_up], max_turns=pace.turns + 2)


@dataclass
class _ProposesOnce:
    name: str = "bench"

    async def reply(self, prompt: Prompt) -> Reply:
        if isinstance(prompt.messages[-1], ResultsMessage):
            return Reply(AssistantMessage((Text(work.DONE),)), StopReason.END_TURN)
        use = ToolUse("t1", work.TOOL, {"order": work.ORDER, "amount": work.AMOUNT})
        return Reply(AssistantMessage((use,)), StopReason.TOOL_USE)


@dataclass
class Pace:
    """Calls a free tool for `turns` turns and notes when it was asked: the time between is all ours."""

    turns: int
    name: str = "bench"
    _at: list[float] = field(default_factory=list[float])

    async def reply(self, prompt: Prompt) -> Reply:
        self._at.append(time.perf_counter())
        if len(self._at) > self.turns:
            return Reply(AssistantMessage((Text(work.DONE),)), StopReason.END_TURN)
        use = ToolUse(f"t{len(self._at)}", "look_up", {"order": work.ORDER})
        return Reply(AssistantMessage((use,)), StopReason.TOOL_USE)

    def take(self) -> float:
        """Seconds a turn since the last take. The first prompt, which reads the transcript, only starts the clock."""
        at, self._at = self._at, []
        return (at[-1] - at[0]) / (len(at) - 1)
