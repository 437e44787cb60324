"""What a pending ask takes in the store, small and with a long conversation before it.

Owns the seeding of long conversations, for every contestant, and the reading of the server's own count of bytes.
"""

from __future__ import annotations

from typing import Any

from agent.ids import RunId
from agent.messages import AssistantMessage, Text, UserMessage, dump_message
from gateway.benchmark import work
from gateway.benchmark.contestants import PydanticAiDesk
from gateway.benchmark.house import GATED, House
from gateway.benchmark.libraries import library
from gateway.changes import Changes
from gateway.ids import AskId, session_id
from gateway.partitions import partition_of
from gateway.ports import Append, Write
from gateway.session import SessionRecord, dump_session

BATCH = 2_000


async def pause_after(house: House, session: str, messages: int) -> tuple[RunId, AskId]:
    """A run of Signoff that asks, in a session that holds so many messages before it."""
    await seed(house, session, messages)
    return await house.pause(session)


async def seed(house: House, session: str, messages: int) -> None:
    """A session that holds so many messages, as if they had been said in an earlier run."""
    of = session_id(session)
    record = SessionRecord(id=of, key=session, agent=GATED, runs=1)
    entries = [
        dump_message(UserMessage(text, "Mia") if by_user else AssistantMessage((Text(text),)))
        for by_user, text in work.earlier(messages)
    ]
    changes = Changes(writes=(Write(of, 0, dump_session(record)),))
    for start in range(0, len(entries), BATCH):
        changes += Changes(appends=(Append(of, tuple(entries[start : start + BATCH])),))
        await house.witness.commit(changes.commit(partition_of(of), f"seed:{of}:{start}", keep_ms=1))
        changes = Changes()


def pydantic_history(messages: int) -> list[Any]:
    said = library("pydantic_ai.messages")
    return [
        said.ModelRequest([said.UserPromptPart(text)])
        if by_user
        else said.ModelResponse([said.TextPart(text)])
        for by_user, text in work.earlier(messages)
    ]


async def bytes_of_signoff(house: House, server: Any, *, messages: int, asks: int, prefix: str) -> float:
    """Everything counts that is there because of the ask: run, session, ask, transcript, journal, deduplication."""
    before = await used(server)
    for n in range(asks):
        await pause_after(house, f"{prefix}{n}", messages)
    return (await used(server) - before) / asks


async def bytes_of_pydantic_ai(
    desk: PydanticAiDesk, server: Any, *, messages: int, asks: int, prefix: str
) -> float:
    before = await used(server)
    for n in range(asks):
        await desk.pause(f"{prefix}{n}", pydantic_history(messages) or None)
    return (await used(server) - before) / asks


async def used(server: Any) -> int:
    """`used_memory` without what the server's clients and its append-only file's buffer take at this moment."""
    facts = await server.info("memory")
    return facts["used_memory"] - facts["mem_clients_normal"] - facts["mem_aof_buffer"]
