"""Every surface's one way to the desk: a verified identity and an answer in, what really happened out.

Owns the step from an identity on a channel to a person, and the words for what happened. Decides nothing itself, and
knows no channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.decision import AnyDecision, Approved, DecisionRequiredError, Declined
from agent.input_request import InputRequest, InputRequestError
from gateway.ask import AskRecord, AskState
from gateway.authority import NotAllowed
from gateway.desk import (
    AskChanged,
    AskClosed,
    CallSettled,
    Desk,
    DeskBusy,
    Recorded,
    Submission,
    UnknownAsk,
)
from gateway.edit import EditRefused
from gateway.errors import NotRecorded, StoreUnreachable
from gateway.ids import PersonId
from gateway.people import People
from gateway.texts import listed, text
from gateway.times import clock_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a person is told. `recorded`: their answer counts. `fields`: what is wrong where, if a form was wrong."""

    told: str
    recorded: bool = False
    record: AskRecord | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Submissions:
    """Submits answers for people, and words the outcome."""

    desk: Desk
    people: People

    def person(self, channel: str, identity: str) -> PersonId | None:
        """Who that is; None for a stranger."""
        known = self.people.by_identity(channel, identity)
        return known.id if known else None

    async def submit(self, submission: Submission) -> Outcome:
        """Take an answer to the desk. Never raises for what a person can do something about."""
        try:
            return self._recorded(await self.desk.submit(submission), submission.decision)
        except AskClosed as error:
            return Outcome(told=self._closed(error.record), record=error.record)
        except AskChanged as error:
            return Outcome(told=text("changed"), record=error.record)
        except NotAllowed as error:
            await self.desk.note_refused(submission, "WRONG_PRINCIPAL")
            return Outcome(told=_not_allowed(error.who_can))
        except EditRefused as error:
            return Outcome(told=str(error), fields=error.fields)
        except (InputRequestError, DecisionRequiredError) as error:
            return Outcome(told=str(error))
        except CallSettled:
            return Outcome(told=text("settled-meanwhile"))
        except UnknownAsk:
            return Outcome(told=text("unknown-ask"))
        except (NotRecorded, StoreUnreachable, DeskBusy):
            return Outcome(told=text("not-recorded"))

    def _recorded(self, recorded: Recorded, decision: AnyDecision) -> Outcome:
        record = recorded.record
        return Outcome(told=_told(recorded, decision), recorded=not recorded.look_again, record=record)

    def _closed(self, record: AskRecord) -> str:
        match record.state:
            case AskState.EXPIRED:
                return text("already-expired")
            case AskState.WITHDRAWN:
                return text("already-withdrawn")
            case AskState.SUPERSEDED | AskState.OPEN:
                return text("already-superseded")
            case AskState.DECIDED:
                return self._decided(record)

    def _decided(self, record: AskRecord) -> str:
        if record.decided is None:
            return text("unknown-ask")
        decision = record.decided.decision
        name = "".join(self.people.names([PersonId(decision.by)]))
        time = clock_time(record.decided.at_ms, zone=None, now_ms=record.decided.at_ms)
        return text("already", name=name, time=time, what=decision.kind.replace("_", " "))


def _told(recorded: Recorded, decision: AnyDecision) -> str:
    record = recorded.record
    if recorded.look_again:
        return text("look-again")
    if not recorded.confirmed:
        return text("not-confirmed")
    if isinstance(decision, Declined):
        return text("recorded-declined")
    if isinstance(decision, Approved):
        if record.open:
            return text("recorded-vote")
        return text("recorded-changed" if record.edits else "recorded-approved")
    if record.open and isinstance(record.ask, InputRequest):
        return text("still-missing", names=listed(record.ask.missing, word="and"))
    return text("recorded-answer")


def _not_allowed(who_can: tuple[str, ...]) -> str:
    return text("not-allowed", names=listed(who_can)) if who_can else text("nobody-can")
