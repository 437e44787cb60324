"""What Signoff has set itself, as a table, and how a measured value stands to it.

Owns the numbers of docs/performance.md. Ratios alone are judged against them; a second is a second only on one machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Goal:
    """`gate` must be met, `goal` is what is worked towards. `better` says in which direction."""

    what: str
    better: Literal["more", "less"]
    gate: float
    goal: float

    def met(self, value: float, bound: float) -> bool:
        return value >= bound if self.better == "more" else value <= bound


@dataclass(frozen=True, slots=True)
class Judged:
    value: float
    gate: float
    goal: float
    gate_met: bool
    goal_met: bool

    def as_json(self) -> dict[str, float | bool]:
        return asdict(self)


GOALS: Mapping[str, Goal] = {
    "together_to_langgraph_sqlite": Goal("cycles/s, 64 at once ÷ LangGraph + SQLite", "more", 8, 16),
    "sequential_to_best_peer": Goal("cycles/s, one by one ÷ the quickest peer here", "more", 2, 4),
    "resume_1000_to_langgraph_sqlite": Goal(
        "resume at 1,000 messages ÷ LangGraph + SQLite", "less", 0.3, 0.12
    ),
    "step_10000_to_10": Goal("cost of a step at 10,000 messages ÷ at 10", "less", 2, 1.2),
    "bytes_to_pydantic_ai": Goal("bytes per pending ask ÷ pydantic-ai's blob", "less", 1.5, 1),
    "bytes_1000_to_pydantic_ai": Goal("the same at 1,000 messages", "less", 0.6, 0.35),
    "listed_to_pydantic_ai": Goal("a person's asks, 10,000 open ÷ pydantic-ai's scan", "less", 0.1, 0.03),
    "seconds_to_first_decision": Goal(
        "seconds from the process's start to its first decision", "less", 1.5, 0.8
    ),
}


def judge(name: str, value: float) -> Judged:
    goal = GOALS[name]
    return Judged(value, goal.gate, goal.goal, goal.met(value, goal.gate), goal.met(value, goal.goal))
