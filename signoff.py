"""What people who write agents import; everything else is Signoff's own business and may move.

    from signoff import Agent, Claude, request_input, tool

Only re-exports. Nothing of the gateway and no SDK is imported on the way: `Claude` is fetched when it is first named.
"""

import importlib
from typing import TYPE_CHECKING

from agent.agent import Agent
from agent.checkin import CheckIn, Component, OutcomeQuestion, Question
from agent.checkpoint import CheckpointRefused
from agent.decision import (
    Answered,
    Approved,
    Assurance,
    DeciderMissing,
    DecisionRequiredError,
    Declined,
    GivenUp,
    Happened,
    InputCancelled,
    InputReceived,
    RunAgain,
)
from agent.evidence import EvidenceRequest
from agent.input_request import InputField, InputRequest, InputRequestError, request_input
from agent.middleware import Allow, AskPerson, DenyCall, Middleware, ToolCall
from agent.model import Model, ModelError, ModelFailure, Prompt, Reply
from agent.policy import PolicyAllow, PolicyAsk, PolicyDeny, PolicyHalt, PolicyRequest
from agent.recorder import CheckInRecorder
from agent.runner import EditRefused, Finished, Paused
from agent.scripted import Scripted
from agent.spec import AgentDefinitionError
from agent.tools import CheckInContext, Tool, ToolContext, tool

if TYPE_CHECKING:
    from agent.claude import Claude

__all__ = [  # noqa: RUF022 - by what one does with them
    # declare an agent and its tools
    "Agent",
    "AgentDefinitionError",
    "tool",
    "Tool",
    "ToolContext",
    "CheckInContext",
    "Component",
    "EvidenceRequest",
    # choose a model
    "Claude",
    "Scripted",
    "Model",
    "ModelError",
    "ModelFailure",
    "Prompt",
    "Reply",
    # ask for what is missing
    "request_input",
    "InputField",
    # stand before and after tools
    "Middleware",
    "ToolCall",
    "Allow",
    "AskPerson",
    "DenyCall",
    "PolicyRequest",
    "PolicyAllow",
    "PolicyAsk",
    "PolicyDeny",
    "PolicyHalt",
    # run it here, without a gateway
    "Finished",
    "Paused",
    "CheckIn",
    "Question",
    "InputRequest",
    "OutcomeQuestion",
    # answer an ask
    "Approved",
    "Declined",
    "Answered",
    "InputReceived",
    "InputCancelled",
    "Happened",
    "RunAgain",
    "GivenUp",
    "Assurance",
    "DecisionRequiredError",
    "DeciderMissing",
    "InputRequestError",
    "EditRefused",
    "CheckpointRefused",
    # watch
    "CheckInRecorder",
]

_FETCHED_WHEN_NAMED = {"Claude": "agent.claude"}


def __getattr__(name: str) -> object:
    if name not in _FETCHED_WHEN_NAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_FETCHED_WHEN_NAMED[name]), name)
