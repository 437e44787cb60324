"""Fixture: no variable of ours is set, whatever the shell that runs the tests has."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.upper().startswith("SIGNOFF_"):
            monkeypatch.delenv(variable)
