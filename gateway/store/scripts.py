"""The Lua scripts: their text, and the digest that names them to a server."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Script:
    text: bytes
    digest: bytes


def _assemble(name: str) -> Script:
    """The file with what it shares put below its first line, which Redis wants to be the flags."""
    folder = files("gateway.store")
    flags, _, body = folder.joinpath(name).read_bytes().partition(b"\n")
    text = flags + b"\n" + folder.joinpath("claimed.lua").read_bytes() + body
    # Redis names a script by its SHA-1; nothing is secured by it.
    return Script(text=text, digest=sha1(text, usedforsecurity=False).hexdigest().encode())


COMMIT = _assemble("commit.lua")
WORK = _assemble("work.lua")
SCRIPTS = (COMMIT, WORK)
PERMITTED = files("gateway.store").joinpath("permitted.lua").read_bytes()
