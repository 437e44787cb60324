"""One tool call, captured: the copy that is shown, approved and executed, and its digest.

Owns what makes two actions the same. Knows nothing of tools' code, of asks, or of who approves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest

from pydantic import JsonValue

from agent.canonical import MAX_BYTES, NotFaithful, canonical, copy_faithfully, parse_json

_SMALL = 4096
"""Characters of arguments up to which a verdict is remembered."""


class Difference(StrEnum):
    """In what an attempted action differs from the approved one."""

    ACTION = "action"
    INPUT = "input"
    BOTH = "both"
    CANNOT_JUDGE = "cannot-judge"
    """One of the two does not match its own digest, so that nothing it says can be compared."""


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call that an agent wants. Made by `capture`; read back from a store, it is checked by `verify`."""

    tenant: str
    tool: str
    schema_hash: str
    arguments_json: str
    """The arguments as canonical JSON: the one truth about them."""
    digest: str
    """SHA-256, in hex, over the canonical JSON of tenant, tool, hash of the tool's schema, and arguments."""

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments, read anew each time: whoever changes them changes a copy of their own."""
        return json.loads(self.arguments_json)

    @property
    def short_digest(self) -> str:
        """The digest as people compare it: `3f9a 27c1`."""
        return f"{self.digest[:4]} {self.digest[4:8]}"


def capture(*, tenant: str, tool: str, schema_hash: str, arguments: object) -> Action:
    """Copy a call faithfully, now; what happens to `arguments` later changes nothing.

    Raises NotFaithful for arguments that are not an object of plain JSON within the bounds.
    """
    copied = copy_faithfully(arguments)
    if not isinstance(copied, dict):
        raise NotFaithful("arguments must be an object")
    text = canonical(copied)
    if len(text) > MAX_BYTES:
        raise NotFaithful(f"larger than {MAX_BYTES} bytes of JSON")
    return Action(tenant, tool, schema_hash, text.decode(), _digest(tenant, tool, schema_hash, text))


def schema_hash(schema: JsonValue) -> str:
    """What stands for a tool's schema in its actions: SHA-256, in hex, over its canonical JSON."""
    return sha256(canonical(schema)).hexdigest()


def verify(action: Action) -> bool:
    """Whether an action is one that `capture` could have made: canonical arguments, and the digest of just these."""
    return (_verify_once if len(action.arguments_json) <= _SMALL else _verify)(action)


def _verify(action: Action) -> bool:
    try:
        arguments = parse_json(action.arguments_json)
        text = canonical(arguments)
        digest = _digest(action.tenant, action.tool, action.schema_hash, text)
    except NotFaithful:
        return False
    if not isinstance(arguments, dict) or text != action.arguments_json.encode():
        return False
    return action.digest.isascii() and compare_digest(digest, action.digest)


# A call is verified at each step on its way to the tool, and an action never changes: one that differs is another.
_verify_once = lru_cache(maxsize=1024)(_verify)


def difference(approved: Action, attempted: Action) -> Difference | None:
    """In what an attempt differs from what was approved; None when it is the same action on the same input."""
    if not (verify(approved) and verify(attempted)):
        return Difference.CANNOT_JUDGE
    if approved.digest == attempted.digest:
        return None
    other_input = approved.arguments_json != attempted.arguments_json
    if _identity(approved) == _identity(attempted):
        return Difference.INPUT
    return Difference.BOTH if other_input else Difference.ACTION


def _identity(action: Action) -> tuple[str, str, str]:
    return action.tenant, action.tool, action.schema_hash


def _digest(tenant: str, tool: str, schema_hash: str, arguments: bytes) -> str:
    before, after = _envelope(tenant, tool, schema_hash)
    return sha256(before + arguments + after).hexdigest()


# A tool's calls differ in their arguments alone. RFC 8785 sorts keys, and `arguments` is the first of these four, so
# that the rest of the text is the same for each call.
@lru_cache(maxsize=1024)
def _envelope(tenant: str, tool: str, schema_hash: str) -> tuple[bytes, bytes]:
    whole = canonical({"tenant": tenant, "tool": tool, "schema": schema_hash, "arguments": None})
    before, _, after = whole.partition(b":null")
    return before + b":", after
