"""The one module that agents import."""

import subprocess
import sys
from pathlib import Path

import pytest

import signoff

HOME = Path(__file__).resolve().parent.parent
NOT_ON_THE_WAY = (
    "anthropic",
    "redis",
    "aiohttp",
    "slack_sdk",
    "slack_bolt",
    "lark_oapi",
    "gateway",
    "handlers",
)


@pytest.mark.parametrize("name", signoff.__all__)
def test_every_promised_name_is_there(name: str):
    assert getattr(signoff, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'signoff' has no attribute 'Agents'"):
        signoff.Agents  # noqa: B018


def test_importing_it_brings_in_neither_sdks_nor_the_gateway():
    code = f"import sys, signoff; print([name for name in {NOT_ON_THE_WAY} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[]"
