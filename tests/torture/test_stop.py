"""Processes that are stopped, cut off, or slow: their claims end, their results do not get lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agent.decision import Approved
from agent.run import FinishReason
from gateway.app import LEASE_LOST
from gateway.ask import AskRecord, AskState
from gateway.desk import AskClosed
from tests.support.faultproxy import Fate
from tests.support.office import Office
from tests.support.stage import Scene, stage, start_victim
from tests.support.valkey import Valkey
from tests.support.victim import LEASE_MS

AHEAD = ("--ahead", str(LEASE_MS + 100))
pytestmark = pytest.mark.slow


async def approved_and_paying(desk: Office, scene: Scene) -> tuple[str, AskRecord]:
    """Bring a run to where its tool has paid and has not been answered."""
    scene.may_answer.clear()
    received = await desk.say("victim")
    (ask,) = await desk.asks(received.run)
    await desk.decide(ask, Approved(by="ann"))
    await scene.paying.wait()
    assert received.run is not None
    return received.run, ask


async def outcome_question(desk: Office, run: str) -> AskRecord:
    async def look() -> AskRecord | None:
        found = [await desk.ask(id_) for id_ in (await desk.run(run)).asks.values()]  # type: ignore[arg-type]
        return next((ask for ask in found if ask.open and ask.ask.kind == "outcome_question"), None)

    return await desk.until(look, "the outcome question")


async def test_a_stopped_process_comes_back_and_its_result_answers_the_question(
    valkey: Valkey, tmp_path: Path
) -> None:
    scene = Scene(None)
    async with stage(valkey, tmp_path, scene) as (desk, proxy, socket):
        scene.victim = stopped = await start_victim(proxy.url, socket, tmp_path)
        run, _ = await approved_and_paying(desk, scene)
        os.kill(stopped.pid, signal.SIGSTOP)
        other = await start_victim(valkey.url, socket, tmp_path, *AHEAD)
        try:
            question = await outcome_question(desk, run)
            assert not question.ask.safe, "the stopped process lives: it can still happen"  # type: ignore[union-attr]
            os.kill(stopped.pid, signal.SIGCONT)
            scene.may_answer.set()
            ended = await desk.finished(run, FinishReason.END_TURN)  # type: ignore[arg-type]
            assert ended.state.text == "paid"
            assert (await desk.ask(question.id)).state is AskState.SUPERSEDED
            assert len(scene.effects) == 1
            kinds = await desk.kinds(run)
            assert kinds.count("used") == 1
            assert kinds.count("executed") == 1
        finally:
            other.kill()
            await other.wait()


async def test_a_process_that_is_cut_off_ends_itself_before_its_claims_do(
    valkey: Valkey, tmp_path: Path
) -> None:
    scene = Scene(None)
    async with stage(valkey, tmp_path, scene) as (desk, proxy, socket):
        scene.victim = await start_victim(proxy.url, socket, tmp_path)
        await approved_and_paying(desk, scene)
        proxy.on_request = lambda _: Fate.DROP
        proxy.reset_all()
        assert await scene.victim.wait() == LEASE_LOST


async def test_a_tool_slower_than_its_lease_runs_once_whoever_clicks(valkey: Valkey, tmp_path: Path) -> None:
    scene = Scene(None)
    async with stage(valkey, tmp_path, scene) as (desk, proxy, socket):
        scene.victim = await start_victim(proxy.url, socket, tmp_path)
        run, ask = await approved_and_paying(desk, scene)
        rival = await start_victim(valkey.url, socket, tmp_path)
        try:
            renewed = await _renewals(valkey, run, count=6)
            assert renewed >= 6, "the claim is renewed for as long as the tool takes"
            with pytest.raises(AskClosed):
                await desk.decide(ask, Approved(by="bob"))
            scene.may_answer.set()
            await desk.finished(run, FinishReason.END_TURN)  # type: ignore[arg-type]
            assert len(scene.effects) == 1
            assert "outcome-unknown" not in await desk.kinds(run)
        finally:
            rival.kill()
            await rival.wait()


async def _renewals(valkey: Valkey, run: str, *, count: int) -> int:
    """Watch the run's claim move on, so often; six renewals are more than one lease."""
    key = next(k for k in valkey.client.keys("*") if b"work" in k and b"runs:victim" in k)
    seen: set[float] = set()

    async def look() -> bool | None:
        seen.add(valkey.client.zscore(key, run))
        return True if len(seen) >= count else None

    await Office.until(None, look, "renewals of the claim")  # type: ignore[arg-type]
    return len(seen)
