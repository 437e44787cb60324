"""The kill test: a process is killed, from outside, at every point where something is sent, done or answered.

Points are every commit, model call and tool call of one approved run, each before, in the middle and after. A second
process finishes the run. Nothing acknowledged is lost, the tool runs at most once per authorization, and what cannot
be known ends as a question.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.decision import Approved, Happened, RunAgain
from agent.messages import check_pairing
from agent.run import FinishReason
from gateway.ask import AskRecord
from gateway.desk import AskClosed, CallSettled
from gateway.session import RunRecord
from tests.support.office import Office
from tests.support.stage import Point, Scene, When, stage, start_victim
from tests.support.valkey import Valkey
from tests.support.victim import LEASE_MS

REPETITIONS = 3
COMMITS = 4
"""Commits of the driving process in one approved run: asks opened, approval spent, result settled, run finished."""
MODEL_CALLS = 2
TOOL_CALLS = 1


POINTS = [
    Point(what, nth, when)
    for what, count in (("commit", COMMITS), ("model", MODEL_CALLS), ("tool", TOOL_CALLS))
    for nth in range(1, count + 1)
    for when in When
]


async def see_through(
    desk: Office, scene: Scene, run_id: str, restart: object, asked: list[AskRecord]
) -> RunRecord:
    """Answer what is asked and restart what was killed, until the run ends."""
    answered: set[str] = set()

    async def look() -> RunRecord | None:
        if scene.victim is not None and scene.victim.returncode is not None:
            scene.victim = await restart()  # type: ignore[operator]
        run = await desk.run(run_id)  # type: ignore[arg-type]
        for id_ in run.asks.values():
            record = await desk.ask(id_)
            if record.open and id_ not in answered:
                answered.add(id_)
                asked.append(record)
                await answer(desk, scene, record)
        return run if run.state.finish is not None else None

    return await desk.until(look, f"the end of {run_id} after {scene.seen}")


async def answer(desk: Office, scene: Scene, record: AskRecord) -> None:
    """Approve; and say truthfully whether a payment happened."""
    if record.ask.kind == "check_in":
        await desk.decide(record, Approved(by="ann"))
        return
    attempt = record.ask.attempt_id  # type: ignore[union-attr]
    happened = any(made == attempt for _, made, _ in scene.effects)
    try:
        await desk.decide(record, Happened(by="ann") if happened else RunAgain(by="ann"))
    except (AskClosed, CallSettled):
        return


async def play(
    valkey: Valkey, folder: Path, point: Point | None, *options: str
) -> tuple[Scene, RunRecord, list[AskRecord], list[str]]:
    """One run with one killing."""
    scene, asked = Scene(point), list[AskRecord]()
    async with stage(valkey, folder, scene) as (desk, proxy, socket):
        scene.victim = await start_victim(proxy.url, socket, folder, *options)
        received = await desk.say("victim")
        assert received.run is not None

        async def restart() -> asyncio.subprocess.Process:
            # Ahead of time by a lease: the dead one's claims have run out, and nobody waits for that.
            return await start_victim(valkey.url, socket, folder, "--ahead", str(LEASE_MS + 100), *options)

        run = await see_through(desk, scene, received.run, restart, asked)
        kinds = await desk.kinds(received.run)
        check_pairing(await desk.transcript(run))
        assert await desk.open_asks() == []
    return scene, run, asked, kinds


async def test_the_points_are_all_of_them(valkey: Valkey, tmp_path: Path) -> None:
    scene, run, _, _ = await play(valkey, tmp_path, None)
    assert run.state.finish is FinishReason.END_TURN
    assert scene.seen == {"commit": COMMITS, "model": MODEL_CALLS, "tool": TOOL_CALLS}, "extend POINTS"


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(REPETITIONS))
@pytest.mark.parametrize("point", POINTS, ids=str)
async def test_killed_at_a_point_the_run_still_ends_and_pays_once(
    valkey: Valkey, tmp_path: Path, point: Point, repetition: int
) -> None:
    scene, run, asked, kinds = await play(valkey, tmp_path, point)
    assert scene.point is None, "the victim was not killed"
    assert run.state.finish is FinishReason.END_TURN
    assert len(scene.effects) == 1, f"paid {len(scene.effects)} times; {kinds}"
    questions = sum(record.ask.kind == "outcome_question" for record in asked)
    assert kinds.count("outcome-unknown") == questions
    assert kinds.count("used") == kinds.count("approved"), "every authorization was spent, once"
    assert "executed-late" not in kinds
    if point.what == "tool" and point.when is not When.AFTER:
        assert questions == 1, "an ambiguous call ends as a question"


@pytest.mark.slow
@pytest.mark.parametrize("when", [When.BEFORE, When.BETWEEN])
async def test_an_idempotent_tool_runs_again_under_the_same_key(
    valkey: Valkey, tmp_path: Path, when: When
) -> None:
    scene, run, asked, kinds = await play(valkey, tmp_path, Point("tool", 1, when), "--idempotent")
    assert run.state.finish is FinishReason.END_TURN
    assert len({key for _, _, key in scene.effects}) == 1
    assert [record.ask.kind for record in asked] == ["check_in"]
    assert kinds.count("used") == 1
