"""Small builders for loop tests: replies, verdicts, and a run brought to a given point."""

from __future__ import annotations

from collections.abc import Iterable

from agent.action import Action, capture
from agent.checkin import CheckIn, Question
from agent.ids import AskKey, RunId
from agent.input_request import InputField, InputRequest
from agent.loop import Step, advance
from agent.messages import AssistantMessage, ResultsMessage, Text, ToolUse, UserMessage
from agent.model import Reply, StopReason
from agent.moves import Execute, Hold, Judged, MessageReceived, ModelReplied, Verdict
from agent.run import Rules, RunState


def action(tool: str = "refund", **arguments: object) -> Action:
    return capture(tenant="default", tool=tool, schema_hash="h", arguments=dict(arguments))


def reply(*calls: str, text: str = "", stop: StopReason | None = None) -> Reply:
    """A reply that proposes a call per name: `refund` becomes call id `refund` of tool `refund`."""
    blocks = ((Text(text),) if text else ()) + tuple(ToolUse(name, name, {}) for name in calls)
    return Reply(AssistantMessage(blocks), stop or (StopReason.TOOL_USE if calls else StopReason.END_TURN))


def executing(tool: str = "refund") -> Execute:
    return Execute(action=action(tool), sentence=f"Run {tool}?")


def consenting(call_id: str, tool: str = "refund") -> Hold:
    ask = CheckIn(
        key=AskKey(""),
        call_id=call_id,
        action=action(tool),
        question=f"Run {tool}?",
        intent="",
        reasons=("always",),
        evidence={},
    )
    return Hold(ask=ask, action=ask.action, sentence=ask.question)


def questioning(call_id: str) -> Hold:
    return Hold(ask=Question(key=AskKey(""), call_id=call_id, question="Which?"), sentence="Which?")


def input_request(call_id: str) -> InputRequest:
    fields = (InputField("due"), InputField("amount", "number"))
    return InputRequest(
        key=AskKey(""),
        call_id=call_id,
        tool="collect",
        request_id="in_1",
        declared_id="d",
        question="Two details?",
        fields=fields,
        values={},
        origins={},
        context={},
    )


class Run:
    """A run that remembers everything it said and wanted."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.state = RunState(run_id=RunId("run_00_X"), agent="a", rules=rules or Rules())
        self.commands: list[object] = []
        self.transcript: list[UserMessage | AssistantMessage | ResultsMessage] = []

    def take(self, event: object) -> Step:
        step = advance(self.state, event)  # type: ignore[arg-type]
        self.state = step.state
        self.commands = list(step.commands)
        self.transcript.extend(step.messages)
        return step

    def begin(self) -> Run:
        self.take(MessageReceived(text="hello"))
        return self

    def propose(self, *calls: str) -> Run:
        self.take(ModelReplied(reply=reply(*calls)))
        return self

    def judge(self, verdicts: Iterable[tuple[str, Verdict]]) -> Run:
        commands: list[object] = []
        for call_id, verdict in verdicts:
            self.take(Judged(call_id=call_id, verdict=verdict))
            commands += self.commands
        self.commands = commands
        return self

    def key(self, call_id: str) -> AskKey:
        call = self.state.call(call_id)
        assert call is not None
        assert call.ask_key is not None, f"{call_id} has no open ask"
        return call.ask_key

    def attempt(self, call_id: str) -> str:
        call = self.state.call(call_id)
        assert call is not None
        assert call.attempt is not None, f"{call_id} has no attempt"
        return call.attempt.id
