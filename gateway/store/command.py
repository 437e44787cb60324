"""A command as the bytes that travel: RESP, the form of every request to Redis.

Own packing, because redis-py's costs more than a whole commit's share of the network.
https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Reply: TypeAlias = "bytes | int | list[Reply] | None"
"""What a command is answered with, in RESP 2; errors are raised instead."""


def pack(*parts: bytes) -> bytes:
    return pack_all(parts)


def pack_all(parts: Sequence[bytes]) -> bytes:
    return b"".join([b"*%d\r\n" % len(parts), *[b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]])


def number(value: int | None) -> bytes:
    """Absent numbers travel as nothing; the scripts read them as nil."""
    return b"" if value is None else b"%d" % value
