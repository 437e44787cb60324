"""Everything that waits for one person, complete, with ten thousand asks open: an index here, a scan there.

Owns the filling and the reading. Asks are copies of a real one under new names, committed as the worker does.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from gateway import asking
from gateway.ask import AskRecord, load_ask
from gateway.benchmark import work
from gateway.benchmark.contestants import PydanticAiDesk, key_of
from gateway.benchmark.house import House
from gateway.ids import AskId
from gateway.partitions import id_in, partition_of
from gateway.ports import DocumentId, Store
from gateway.queues import asks_for

OPEN = 10_000
IN_FLIGHT = 256


async def fill_signoff(house: House, count: int) -> None:
    _, ask = await house.pause(f"listing-{time.time_ns()}")
    (stored,) = await house.witness.load([ask])
    if stored is None:
        raise LookupError(f"ask {ask} is gone")
    record = load_ask(stored.body)
    for start in range(0, count, IN_FLIGHT):
        numbers = range(start, min(start + IN_FLIGHT, count))
        await asyncio.gather(*[_open(house.witness.store, record, n) for n in numbers])


async def _open(store: Store, like: AskRecord, n: int) -> None:
    id_ = AskId(DocumentId(id_in(n % 64, "a", f"listed{n}x{like.id}")))
    copy = replace(like, id=id_, deadline_ms=None)
    changes = asking.opened(copy)
    await store.commit(changes.commit(partition_of(id_), f"listed:{id_}", keep_ms=60_000))


async def fill_pydantic_ai(desk: PydanticAiDesk, count: int, prefix: str) -> None:
    """The same blob under so many keys."""
    await desk.pause(f"{prefix}0")
    blob = await desk.client.get(key_of(f"{prefix}0"))
    for start in range(1, count, IN_FLIGHT):
        numbers = range(start, min(start + IN_FLIGHT, count))
        await desk.client.mset({key_of(f"{prefix}{n}"): blob for n in numbers})


async def list_signoff(house: House) -> tuple[int, float]:
    """How many were listed, and the seconds that it took."""
    began = time.perf_counter()
    found = await house.witness.members(asks_for(work.APPROVER), low=None, high=None, limit=10 * OPEN)
    return len(found), time.perf_counter() - began


async def list_pydantic_ai(desk: PydanticAiDesk, prefix: str) -> tuple[int, float]:
    """Reads every history, as there is no index: those that end in a call are pending."""
    began = time.perf_counter()
    keys: list[Any] = [key async for key in desk.client.scan_iter(match=key_of(f"{prefix}*"), count=1000)]
    pending = 0
    for start in range(0, len(keys), IN_FLIGHT):
        for blob in await desk.client.mget(keys[start : start + IN_FLIGHT]):
            pending += bool(desk.read(blob)[-1].tool_calls)
    return pending, time.perf_counter() - began
