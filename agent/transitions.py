"""Which events a run and a call take, where, and where each may lead: the loop's two tables, as data.

A missing entry is the error. The diagrams in `docs/concepts.md` are drawn from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.moves import (
    AnswerReceived,
    Decided,
    Event,
    Expired,
    InputAsked,
    Judged,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    OutcomeUnknown,
    Settled,
    StopRequested,
    ToolRaised,
    ToolReturned,
    Withdrawn,
)
from agent.run import CallPhase, Phase

P, C = Phase, CallPhase
_MOVING = frozenset({P.ACTING, P.THINKING, P.CLOSING, P.FINISHED})

RUN_TABLE: Mapping[Phase, Mapping[type[Event], frozenset[Phase]]] = {
    P.READY: {
        MessageReceived: frozenset({P.THINKING}),
        StopRequested: frozenset({P.FINISHED}),
    },
    P.THINKING: {
        ModelReplied: frozenset({P.THINKING, P.JUDGING, P.FINISHED}),
        ModelFailed: frozenset({P.THINKING, P.FINISHED}),
        StopRequested: frozenset({P.FINISHED}),
    },
    P.JUDGING: {
        Judged: frozenset({P.JUDGING}) | _MOVING,
        StopRequested: frozenset({P.FINISHED}),
    },
    P.ACTING: {
        Decided: _MOVING,
        AnswerReceived: frozenset({P.ACTING}),
        Expired: _MOVING,
        Withdrawn: _MOVING,
        InputAsked: frozenset({P.ACTING}),
        ToolReturned: _MOVING,
        ToolRaised: _MOVING,
        OutcomeUnknown: _MOVING,
        Settled: _MOVING,
        StopRequested: frozenset({P.CLOSING, P.FINISHED}),
    },
    P.CLOSING: {
        Decided: frozenset({P.CLOSING, P.FINISHED}),
        InputAsked: frozenset({P.CLOSING, P.FINISHED}),
        ToolReturned: frozenset({P.CLOSING, P.FINISHED}),
        ToolRaised: frozenset({P.CLOSING, P.FINISHED}),
        OutcomeUnknown: frozenset({P.CLOSING, P.FINISHED}),
        Settled: frozenset({P.CLOSING, P.FINISHED}),
        StopRequested: frozenset({P.CLOSING, P.FINISHED}),
    },
    P.FINISHED: {},
}
"""Which events a run takes in which phase, and where each may lead."""

CALL_TABLE: Mapping[CallPhase, Mapping[type[Event], frozenset[CallPhase]]] = {
    C.PROPOSED: {Judged: frozenset({C.ALLOWED, C.HELD, C.SETTLED, C.RUNNING, C.WAITING, C.ASKING})},
    C.ALLOWED: {},
    C.HELD: {},
    C.WAITING: {
        Decided: frozenset({C.RUNNING, C.SETTLED}),
        Expired: frozenset({C.SETTLED}),
        Withdrawn: frozenset({C.SETTLED}),
    },
    C.ASKING: {
        Decided: frozenset({C.SETTLED}),
        Expired: frozenset({C.SETTLED}),
        Withdrawn: frozenset({C.SETTLED}),
    },
    C.RUNNING: {
        ToolReturned: frozenset({C.SETTLED}),
        ToolRaised: frozenset({C.SETTLED}),
        InputAsked: frozenset({C.COLLECTING, C.SETTLED}),
        OutcomeUnknown: frozenset({C.RUNNING, C.UNKNOWN, C.SETTLED}),
        Settled: frozenset({C.SETTLED}),
    },
    C.COLLECTING: {
        AnswerReceived: frozenset({C.COLLECTING, C.COLLECTED}),
        Decided: frozenset({C.SETTLED}),
        Expired: frozenset({C.SETTLED}),
        Withdrawn: frozenset({C.SETTLED}),
    },
    C.COLLECTED: {ToolReturned: frozenset({C.SETTLED}), ToolRaised: frozenset({C.SETTLED})},
    C.UNKNOWN: {
        Decided: frozenset({C.RUNNING, C.SETTLED}),
        Settled: frozenset({C.SETTLED}),
    },
    C.SETTLED: {},
}
"""Which events a call takes in which phase, and where each may lead it."""
