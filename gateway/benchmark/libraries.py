"""The only way to the libraries that Signoff is measured against: by import string, when they are measured.

Owns the message for whoever has not installed them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable
from typing import Any

from gateway.errors import CallerError

PEERS = ("langgraph", "langgraph-checkpoint-sqlite", "pydantic-ai-slim")


class PeersMissing(CallerError):
    """The libraries to measure against are not installed."""

    def __init__(self, module: str) -> None:
        super().__init__(
            f"{module} is not installed: pip install 'signoff[bench]', or measure Signoff alone with --no-peers"
        )


def library(module: str) -> Any:
    """A peer's module. Untyped: what is used of it is what its documentation shows. Raises PeersMissing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise PeersMissing(module) from error


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """Of those that are installed."""
    found: dict[str, str] = {}
    for name in distributions:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
