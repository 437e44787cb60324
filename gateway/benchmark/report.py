"""What was measured, as JSON and as lines for people. Owns the shape of both; measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.benchmark.goals import GOALS, judge


@dataclass(kw_only=True)
class Report:
    """`figures` by name; `ratios` are medians over ratios of the same repetition; goals follow from `ratios`."""

    machine: Mapping[str, object]
    method: Mapping[str, object]
    figures: dict[str, float | dict[str, float]] = field(
        default_factory=dict[str, "float | dict[str, float]"]
    )
    ratios: dict[str, float] = field(default_factory=dict[str, float])

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "method": dict(self.method),
            "figures": self.figures,
            "ratios": self.ratios,
            "goals": {
                name: judge(name, value).as_json() for name, value in self.ratios.items() if name in GOALS
            },
        }

    def lines(self) -> Iterator[str]:
        yield ", ".join(f"{name} {value}" for name, value in {**self.machine, **self.method}.items())
        yield ""
        for name, figure in self.figures.items():
            yield f"{name.replace('_', ' ')}: {_shown(figure)}"
        yield ""
        for name, value in self.ratios.items():
            yield _judged(name, value) if name in GOALS else f"{name.replace('_', ' ')}: {_number(value)}"


def _shown(figure: float | dict[str, float]) -> str:
    if isinstance(figure, dict):
        return ", ".join(f"{name} {_number(value)}" for name, value in figure.items())
    return _number(figure)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _judged(name: str, value: float) -> str:
    goal, judged = GOALS[name], judge(name, value)
    sign = "≥" if goal.better == "more" else "≤"
    standing = "goal met" if judged.goal_met else "gate met" if judged.gate_met else "GATE NOT MET"
    return f"{goal.what}: {_number(value)} (gate {sign}{goal.gate:g}, goal {sign}{goal.goal:g}): {standing}"
