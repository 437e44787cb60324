"""How a tool's definition, and a call's arguments, are refused."""

from __future__ import annotations


class ToolDefinitionError(ValueError):
    """A tool that cannot be what its definition says. Raised where it is defined."""


class InvalidArguments(ValueError):
    """Arguments that a tool does not take. Says where and what is expected, never the value that was found."""
