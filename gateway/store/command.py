"""A command as the bytes that travel: RESP, the form of every request to Redis.

Own packing, because redis-py's costs more than a whole commit's share of the network.
https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Reply: TypeAlias = "bytes | int | list[Reply] | None"
"""What a command is answered with, in RESP 2; errors are raised instead."""


_TABLED = 2_048
_SIZES = [b"\r\n$%d\r\n" % size for size in range(_TABLED)]
"""What stands before a part of this size, the end of the part before it included."""


def pack(*parts: bytes) -> bytes:
    return pack_all(parts)


def pack_all(parts: Sequence[bytes]) -> bytes:
    pieces = [b"*%d" % len(parts)]
    for part in parts:
        size = len(part)
        pieces.append(_SIZES[size] if size < _TABLED else b"\r\n$%d\r\n" % size)
        pieces.append(part)
    pieces.append(b"\r\n")
    return b"".join(pieces)


def number(value: int | None) -> bytes:
    """Absent numbers travel as nothing; the scripts read them as nil."""
    return b"" if value is None else b"%d" % value
