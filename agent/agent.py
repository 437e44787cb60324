"""The `Agent`: a declaration that can run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent import runner
from agent.messages import AssistantMessage, ResultsMessage, UserMessage
from agent.runner import Outcome
from agent.spec import AgentSpec


@dataclass(frozen=True, kw_only=True)
class Agent(AgentSpec):
    """An agent: what it may do, which of it needs a person, and how to run it in this process.

        agent = Agent(name="refunds", model=..., system="...", tools=[issue_refund])
        outcome = await agent.run("Refund $5,000 on order A-1042, it arrived broken")
        if isinstance(outcome, Paused):
            outcome = await agent.resume(outcome.checkpoint, Approved(by="ann@example.com"))

    Served by the gateway, the same agent's asks go to people and its runs survive their process.
    """

    def attach(self, listener: Callable[[object], None]) -> None:
        """Tell a listener (a `CheckInRecorder`, or any callable) of every event of this agent's runs."""
        self.listeners.append(listener)

    async def run(
        self,
        message: str,
        *,
        author: str = "",
        history: Sequence[UserMessage | AssistantMessage | ResultsMessage] = (),
        tenant: str = "default",
    ) -> Outcome:
        """Run from a message to the end, or to a pause. `history` is the transcript of earlier runs."""
        return await runner.start(self, self.emit, message, author=author, history=history, tenant=tenant)

    async def resume(self, checkpoint: str | bytes, decisions: object) -> Outcome:
        """Go on from a pause: `decisions` by ask key, or one decision for the only open ask.

        Raises DecisionRequiredError, InputRequestError, EditRefused or CheckpointRefused; the checkpoint then
        is as answerable as before.
        """
        return await runner.resume(self, self.emit, checkpoint, decisions)

    def emit(self, event: object) -> None:
        for listener in self.listeners:
            listener(event)
