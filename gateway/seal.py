"""The seal on a decision: what proves, before anything executes, that the stored decision is the one we took.

Owns the two uses of the key on a digest: sealing a decision, and the digest as the outside may see it. Pure; the key
comes from `secret.py`.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import NewType, cast

from pydantic import JsonValue, TypeAdapter

from agent.decision import AnyDecision, Decision
from gateway.ask import BindingDecision
from gateway.ids import AskId

Key = NewType("Key", bytes)
"""The gateway's secret: at least 32 bytes, the same in every process on one store."""

# One key, several purposes: what is signed begins with its purpose, so that no signature serves for another.
_DECISION = "signoff/decision/1"
_DIGEST = "signoff/digest/1"

_DECISION_JSON: TypeAdapter[AnyDecision] = TypeAdapter(Decision)


def seal(key: Key, *, ask_id: AskId, revision: int, digest: str, decision: AnyDecision) -> str:
    """An HMAC over the ask, the revision and digest that were shown, and the whole decision with its decider."""
    return _sign(key, [_DECISION, ask_id, revision, digest, _fingerprint(decision)])


def check(key: Key, decided: BindingDecision, *, ask_id: AskId) -> bool:
    """Whether a stored decision is the one that was sealed. Takes the same time wherever they differ."""
    expected = seal(
        key, ask_id=ask_id, revision=decided.revision, digest=decided.digest, decision=decided.decision
    )
    return hmac.compare_digest(expected.encode(), decided.seal.encode(errors="replace"))


def public_digest(key: Key, digest: str, *, hides: bool) -> str:
    """The digest as it leaves the process.

    Where the action hides values (`hides`), the plain one would let anybody who can guess them confirm the guess, so
    the outside gets a keyed one.
    """
    return _sign(key, [_DIGEST, digest]) if hides and digest else digest


def _fingerprint(decision: AnyDecision) -> str:
    """Fields at their defaults are left out: a field that a later version appends does not break older seals."""
    fields = cast(
        "Mapping[str, JsonValue]", _DECISION_JSON.dump_python(decision, mode="json", exclude_defaults=True)
    )
    said = {**fields, "kind": decision.kind, "by": decision.by, "assurance": str(decision.assurance)}
    return sha256(_canonical(said)).hexdigest()


def _sign(key: Key, message: list[JsonValue]) -> str:
    return hmac.new(key, _canonical(message), sha256).hexdigest()


def _canonical(value: object) -> bytes:
    # Not RFC 8785: an answer may be any JSON, integers beyond 2^53 included, and only we ever compare these bytes.
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
