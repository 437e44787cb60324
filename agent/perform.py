"""Carries out what the loop wants of the world: models, judging, tools. Every result comes back as an event.

Owns the calls into user code: time-outs, rendering, the after-tool middleware. Stores nothing and decides nothing; both
drivers use it, the in-process one and the gateway's.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from agent import gate, middleware
from agent.action import Action, verify
from agent.events import ToolFailed
from agent.ids import AskKey
from agent.input_request import InputDeclaration, InputRequest
from agent.messages import Transcript
from agent.middleware import ToolCall
from agent.model import ModelError, ModelFailure, Prompt
from agent.moves import (
    InputAsked,
    Judged,
    ModelFailed,
    ModelReplied,
    OutcomeUnknown,
    ToolRaised,
    ToolReturned,
)
from agent.redaction import redact_value, scrub
from agent.redaction import secrets as hidden_values
from agent.result import plain_result, render_result
from agent.run import Attempt, Call, RunState
from agent.spec import AgentSpec
from agent.tools import InvalidArguments, Tool, ToolContext

Emit = Callable[[object], None]
Executed = ToolReturned | ToolRaised | InputAsked
Late = Callable[[Executed], None]
"""Gets the result of an attempt that had been given up."""


@dataclass(frozen=True, slots=True)
class Performer:
    """One agent's hands."""

    spec: AgentSpec
    emit: Emit

    async def think(self, state: RunState, transcript: Transcript) -> ModelReplied | ModelFailed:
        """Call the model. An unforeseen exception of a model is a failure of this run, not of the process."""
        prompt = Prompt(self.spec.system, self.spec.tool_specs, transcript)
        try:
            return ModelReplied(reply=await self.spec.model.reply(prompt))
        except ModelError as error:
            return ModelFailed(kind=error.kind, retry_after=error.retry_after, detail=str(error))
        except Exception as error:
            detail = f"the model raised {type(error).__name__}: {error}"
            return ModelFailed(kind=ModelFailure.REFUSED_REQUEST, detail=detail)

    async def judge(self, state: RunState, call_id: str, transcript: Transcript) -> Judged:
        call = _call(state, call_id)
        verdict = await gate.judge(self.spec, state, call, transcript, self.emit)
        return Judged(call_id=call_id, verdict=verdict)

    async def execute(
        self, state: RunState, call_id: str, attempt: Attempt, late: Late
    ) -> Executed | OutcomeUnknown:
        """Run the tool on exactly the captured arguments, within its time-out.

        A tool that does not answer in time leaves an unknown outcome; should it answer later, `late` is told.
        """
        call = _call(state, call_id)
        tool = self.spec.toolbox.get(call.tool)
        refusal = unfit(tool, call.action)
        if tool is None or refusal is not None:
            return ToolRaised(call_id=call_id, attempt_id=attempt.id, error=refusal or "", executed=False)
        running = asyncio.ensure_future(self._run(state, call, tool, attempt))
        return await _within(tool, call, attempt, running, late)

    async def conclude(self, state: RunState, call_id: str) -> ToolReturned | ToolRaised:
        """Pass the complete answer to an input request through the after-tool middleware."""
        call = _call(state, call_id)
        result = cast(InputRequest, call.ask).result()
        return await self._finish(
            state, call, self.spec.toolbox.get(call.tool), cast(Attempt, call.attempt), result
        )

    async def _run(self, state: RunState, call: Call, tool: Tool, attempt: Attempt) -> Executed:
        context = ToolContext(
            run_id=state.run_id,
            call_id=call.id,
            attempt_id=attempt.id,
            idempotency_key=attempt.idempotency_key,
        )
        try:
            result = await tool.call(cast(Action, call.action).arguments, context)
        except Exception as error:
            return self._raised(state, call, attempt, error)
        if isinstance(result, InputDeclaration):
            request = _request(state, call, result)
            if request.missing:
                return InputAsked(call_id=call.id, attempt_id=attempt.id, request=request)
            result = request.result()
        return await self._finish(state, call, tool, attempt, result)

    async def _finish(
        self, state: RunState, call: Call, tool: Tool | None, attempt: Attempt, result: object
    ) -> ToolReturned | ToolRaised:
        """Redact, pass through the after-tool middleware, render."""
        seen = ToolCall(
            tool=call.tool,
            arguments=cast(Action, call.action).arguments,
            call_id=call.id,
            run_id=state.run_id,
            iteration=state.turn,
        )
        try:
            passed = await middleware.after(self.spec.middleware, seen, result)
            content = render_result(_without_secrets(passed, tool))
        except Exception as error:
            return self._raised(state, call, attempt, error, ran=True)
        return ToolReturned(call_id=call.id, attempt_id=attempt.id, content=content)

    def _raised(
        self, state: RunState, call: Call, attempt: Attempt, error: Exception, *, ran: bool = False
    ) -> ToolRaised:
        """What the model and the operators read of an exception: without the values of redacted arguments."""
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        text = scrub(text, hidden_values(cast(Action, call.action).arguments, call.redact))
        if ran:
            text = f"it ran, but its result could not be passed on: {text}"
        self.emit(ToolFailed(run_id=state.run_id, call_id=call.id, tool=call.tool, error=text))
        return ToolRaised(call_id=call.id, attempt_id=attempt.id, error=text)


def unfit(tool: Tool | None, action: Action | None) -> str | None:
    """Why a captured action cannot be run by today's code; None when it can."""
    if tool is None:
        return "the tool no longer exists"
    if action is None or not verify(action):
        return "the stored arguments do not match what was shown"
    if tool.schema_hash != action.schema_hash:
        return "the tool changed since it was shown"
    try:
        unchanged = tool.validate(action.arguments) == action.arguments
    except InvalidArguments:
        unchanged = False
    return None if unchanged else "the tool no longer takes exactly these arguments"


def _call(state: RunState, call_id: str) -> Call:
    call = state.call(call_id)
    if call is None:
        raise LookupError(f"no call {call_id!r} in this turn")
    return call


async def _within(
    tool: Tool, call: Call, attempt: Attempt, running: asyncio.Future[Executed], late: Late
) -> Executed | OutcomeUnknown:
    done, _ = await asyncio.wait({running}, timeout=tool.timeout)
    if done:
        return running.result()
    running.add_done_callback(lambda done: None if done.cancelled() else late(done.result()))
    return OutcomeUnknown(call_id=call.id, attempt_id=attempt.id, idempotent=tool.idempotent, safe=False)


def _request(state: RunState, call: Call, declared: InputDeclaration) -> InputRequest:
    """The declaration as a person will see it. Its id is made now, so that a stale reply never matches."""
    return InputRequest(
        key=AskKey(""),
        call_id=call.id,
        tool=call.tool,
        request_id=f"in_{secrets.token_hex(8)}",
        declared_id=declared.id,
        question=declared.question,
        fields=declared.fields,
        values=declared.supplied,
        origins=dict.fromkeys(declared.supplied, "declaration"),
        context=declared.context,
        original_request=state.request,
    )


def _without_secrets(result: object, tool: Tool | None) -> object:
    """A result as it may be stored, shown to the model and quoted as evidence."""
    return redact_value(plain_result(result), tool.redact_result) if tool and tool.redact_result else result
