"""Transcripts are read once, then only what was added; and what was read stays as it was."""

from __future__ import annotations

import pytest

from agent.messages import UserMessage, dump_message
from gateway import transcripts
from gateway.ids import SessionId
from gateway.ports import DocumentId
from gateway.transcripts import Message, Transcripts, TranscriptShort

SESSION = SessionId(DocumentId("s_07_CONVERSATION"))


class Stored:
    """The part of a store that holds transcripts, and how many entries were read of it."""

    def __init__(self) -> None:
        self.entries: dict[str, list[bytes]] = {}
        self.read = 0

    def add(self, *texts: str, session: str = SESSION) -> None:
        self.entries.setdefault(session, []).extend(dump_message(each) for each in said(*texts))

    async def transcript(self, session: DocumentId, *, start: int = 0) -> list[bytes]:
        found = self.entries.get(session, [])[start:]
        self.read += len(found)
        return found


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(UserMessage(text) for text in texts)


@pytest.fixture
def stored() -> Stored:
    return Stored()


@pytest.fixture
def kept(stored: Stored) -> Transcripts:
    return Transcripts(stored)  # type: ignore[arg-type]


async def test_only_what_was_added_is_read(kept: Transcripts, stored: Stored):
    stored.add("a", "b")
    assert await kept.upto(SESSION, 2) == said("a", "b")
    assert await kept.upto(SESSION, 2) == said("a", "b")
    assert stored.read == 2
    stored.add("c")
    assert await kept.upto(SESSION, 3) == said("a", "b", "c")
    assert stored.read == 3


async def test_what_this_process_wrote_is_not_read_at_all(kept: Transcripts, stored: Stored):
    kept.extend(SESSION, 0, [*said("a")])
    kept.extend(SESSION, 1, [*said("b", "c")])
    assert await kept.upto(SESSION, 3) == said("a", "b", "c")
    assert stored.read == 0


async def test_what_was_written_after_a_gap_is_read(kept: Transcripts, stored: Stored):
    """Another process went on in between: what we know of the end does not fit what we know of the start."""
    stored.add("a", "b", "c")
    await kept.upto(SESSION, 1)
    kept.extend(SESSION, 2, [*said("not seen by us")])
    kept.extend(SessionId(DocumentId("s_07_OTHER")), 2, [*said("nothing before it is known")])
    assert await kept.upto(SESSION, 3) == said("a", "b", "c")


async def test_a_step_sees_no_more_than_its_run_has_seen(kept: Transcripts, stored: Stored):
    stored.add("a", "b", "c")
    assert await kept.upto(SESSION, 2) == said("a", "b")
    assert await kept.upto(SESSION, 0) == ()


async def test_what_was_handed_out_does_not_grow(kept: Transcripts, stored: Stored):
    stored.add("a")
    before = await kept.upto(SESSION, 1)
    kept.extend(SESSION, 1, [*said("b")])
    assert before == said("a")


async def test_fewer_messages_than_the_run_has_seen_is_for_an_operator(kept: Transcripts, stored: Stored):
    stored.add("a")
    with pytest.raises(TranscriptShort, match="expected 2 messages, found 1"):
        await kept.upto(SESSION, 2)
    stored.add("b")
    assert await kept.upto(SESSION, 2) == said("a", "b")


async def test_sessions_do_not_mix(kept: Transcripts, stored: Stored):
    other = SessionId(DocumentId("s_07_OTHER"))
    stored.add("a")
    stored.add("x", session=other)
    assert await kept.upto(SESSION, 1) == said("a")
    assert await kept.upto(other, 1) == said("x")


async def test_those_not_used_for_longest_are_read_again(
    kept: Transcripts, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transcripts, "KEPT_SESSIONS", 2)
    one, two, three = (SessionId(DocumentId(f"s_07_{n}")) for n in range(3))
    for session in (one, two, three):
        stored.add("a", session=session)
    for session in (one, two, one, three):
        await kept.upto(session, 1)
    assert stored.read == 3
    await kept.upto(one, 1)
    assert stored.read == 3
    await kept.upto(two, 1)
    assert stored.read == 4


async def test_what_this_process_writes_is_bounded_too(
    kept: Transcripts, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transcripts, "KEPT_SESSIONS", 2)
    for number in range(10):
        kept.extend(SessionId(DocumentId(f"s_07_{number}")), 0, [*said("a")])
    assert len(kept._kept) == 2
