"""What an agent's author declares, checked when it is declared.

Owns the declaration and its refusals. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.evidence import Assembler
from agent.middleware import Middleware
from agent.model import Model, ToolSpec
from agent.policy import Policy
from agent.run import OnNo, Rules
from agent.scorer import Scorer
from agent.tools import ASK_USER, Tool, Toolbox

Evidence = Literal["standard", "minimal"] | Assembler


class AgentDefinitionError(ValueError):
    """An agent that cannot be what its declaration says. Raised where it is declared."""


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """A declared agent.

    `evidence` says how an ask is explained: `"standard"` (the default), `"minimal"`, or an assembler of your own.
    `policy` stands before every call; `middleware` around it. `on_decline` and `on_expiry` say whether a no, or
    nobody's answer, is told to the model (`"adapt"`) or ends the run (`"stop"`). `max_turns` counts model replies.

    Raises AgentDefinitionError.
    """

    name: str
    model: Model
    system: str = ""
    tools: Sequence[Tool] = ()
    evidence: Evidence | None = None
    scorer: Scorer | None = None
    policy: Policy | None = None
    middleware: Sequence[Middleware] = ()
    on_decline: OnNo = "adapt"
    on_expiry: OnNo = "adapt"
    max_turns: int = 25
    listeners: list[Callable[[object], None]] = field(
        default_factory=list[Callable[[object], None]], repr=False
    )
    toolbox: Toolbox = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "toolbox", Toolbox(self.tools))
        for problem in _problems(self):
            raise AgentDefinitionError(f"agent {self.name!r}: {problem}")

    @property
    def rules(self) -> Rules:
        return Rules(self.on_decline, self.on_expiry, self.max_turns)

    @property
    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them: the author's, and `ask_user` unless one of them has that name."""
        own = self.toolbox.specs()
        return own if self.toolbox.get(ASK_USER.name) else (*own, ASK_USER)


def _problems(spec: AgentSpec) -> list[str]:
    can_ask = spec.policy is not None or any(tool.check_in is not None for tool in spec.tools)
    names = [link.name for link in spec.middleware]
    checks = (
        (not spec.name.strip(), "a name is required"),
        (spec.max_turns < 1, "max_turns must be at least 1"),
        (spec.on_decline not in ("adapt", "stop"), 'on_decline must be "adapt" or "stop"'),
        (spec.on_expiry not in ("adapt", "stop"), 'on_expiry must be "adapt" or "stop"'),
        (len(set(names)) != len(names), f"middleware names must be unique: {names}"),
        (
            spec.evidence is not None and not can_ask,
            "evidence is configured, but no tool declares a check_in and there is no policy that could ask",
        ),
        (
            spec.evidence == "minimal" and spec.scorer is not None,
            "a scorer ranks drivers, which minimal evidence does not have: drop one of them",
        ),
        (
            spec.evidence is not None
            and not callable(spec.evidence)
            and spec.evidence not in ("standard", "minimal"),
            'evidence must be "standard", "minimal" or an assembler',
        ),
    )
    return [problem for failed, problem in checks if failed]
