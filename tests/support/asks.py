"""Records of asks and runs for tests, as small as the types allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from agent.action import capture
from agent.checkin import AnyAsk, CheckIn, OutcomeQuestion, Question
from agent.decision import AnyDecision
from agent.ids import AskKey, AttemptId, RunId
from agent.input_request import InputField, InputRequest
from agent.run import RunState
from gateway.ask import AskRecord, BindingDecision
from gateway.ids import AskId, PersonId, SessionId
from gateway.ports import DocumentId
from gateway.seal import Key, seal
from gateway.session import AttemptRecord, RunRecord

KEY = Key(b"k" * 16 + bytes(range(32)))
ASK = AskId(DocumentId("a_07_K3T9QW2M4A"))
RUN = RunId("run_07_9F2CAAAA")
SESSION = SessionId(DocumentId("s_07_CONVERSATION"))
REFUND: dict[str, JsonValue] = {"order_id": "A-1042", "amount": 5000, "currency": "USD"}


def action(arguments: dict[str, JsonValue] | None = None, tool: str = "issue_refund"):
    given = REFUND if arguments is None else arguments
    return capture(tenant="default", tool=tool, schema_hash="h", arguments=given)


def check_in(
    arguments: dict[str, JsonValue] | None = None,
    *,
    tool: str = "issue_refund",
    question: str = "Refund 5000 USD on order A-1042?",
    redact: tuple[str, ...] = (),
) -> CheckIn:
    return CheckIn(
        key=AskKey("1-0-1"),
        call_id="call-1",
        action=action(arguments, tool),
        question=question,
        intent="",
        reasons=(),
        evidence={},
        redact=redact,
    )


def question(text: str = "Which order?") -> Question:
    return Question(key=AskKey("1-0-1"), call_id="call-1", question=text)


def input_request(tool: str = "collect") -> InputRequest:
    return InputRequest(
        key=AskKey("1-0-1"),
        call_id="call-1",
        tool=tool,
        request_id="in-1",
        declared_id="invoice",
        question="I need 2 details to go on",
        fields=(InputField("due"), InputField("amount", "number")),
        values={},
        origins={},
        context={},
    )


def outcome_question(*, redact: tuple[str, ...] = ()) -> OutcomeQuestion:
    return OutcomeQuestion(
        key=AskKey("1-0-2"),
        call_id="call-1",
        action=action(),
        question="Refund 5000 USD on order A-1042?",
        attempt_id=f"{RUN}:1-0:1",
        safe=False,
        redact=redact,
    )


def ask_record(ask: AnyAsk | None = None, **changes: Any) -> AskRecord:
    record = AskRecord(
        id=ASK,
        run_id=RUN,
        session_id=SESSION,
        agent="refunds",
        tenant="default",
        ask=ask or check_in(),
        opened_at_ms=1_000,
        route="default",
        approvers=("ann", "bob"),
        requesters=(PersonId("mia"),),
    )
    return replace(record, **changes)


def binding(decision: AnyDecision, record: AskRecord | None = None, key: Key = KEY) -> BindingDecision:
    of = record or ask_record()
    return BindingDecision(
        decision=decision,
        at_ms=2_000,
        channel="console",
        revision=of.revision,
        digest=of.digest,
        seal=seal(key, ask_id=of.id, revision=of.revision, digest=of.digest, decision=decision),
    )


def run_record(**state: Any) -> RunRecord:
    return RunRecord(
        state=RunState(run_id=RUN, agent="refunds", **state), session_id=SESSION, authors=(PersonId("mia"),)
    )


def attempt_record() -> AttemptRecord:
    return AttemptRecord(
        id=AttemptId(f"{RUN}:1-0:1"),
        run_id=RUN,
        call_id="call-1",
        tool="issue_refund",
        instance="host/boot/ns/1/2",
        started_at_ms=1_500,
    )
