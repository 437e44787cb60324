"""A conversation with an agent at a terminal: messages in, asks shown and answered in place, the end told.

Owns the flow. It waits for the gateway's views and submits answers; what they mean is decided below.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from datetime import tzinfo

from rich.text import Text

from agent.decision import AnyDecision
from agent.ids import RunId
from gateway.ask import AskRecord, OutcomeKind, load_ask
from gateway.desk import Submission
from gateway.ids import PersonId
from gateway.intake import Inbound, Intake
from gateway.notice import RunNotice
from gateway.people import People
from gateway.ports import Clock, Store
from gateway.session import Message, Origin
from gateway.view import AskView, Limits, present
from handlers.console import render
from handlers.console.prompt import QUIT, Prompt
from handlers.console.terminal import Terminal
from handlers.submission import Submissions


@dataclass
class Chat:
    """One person's conversation with one agent."""

    agent: str
    session: str
    person: PersonId
    terminal: Terminal
    views: asyncio.Queue[AskView | RunNotice]
    store: Store
    clock: Clock
    intake: Intake
    submissions: Submissions
    people: People
    confirm: bool = True
    _told: dict[str, tuple[bool, OutcomeKind | None]] = field(
        default_factory=dict[str, tuple[bool, OutcomeKind | None]]
    )

    async def run(self) -> bool:
        """Talk until the person leaves. Whether something still waits for a decision."""
        while True:
            message = await self.terminal.ask("you> ")
            if message is None or message.strip() in QUIT:
                return False
            if message.strip() and not await self.say(message.strip()):
                return True

    async def say(self, message: str) -> bool:
        """Send a message and see its run through. False: the person left while something was open."""
        return await self.follow(await self.send(message))

    async def send(self, message: str) -> RunId | None:
        """Send a message. The run that it started."""
        received = await self.intake.receive(
            Inbound(
                agent=self.agent,
                session_key=self.session,
                message=Message(
                    id=secrets.token_hex(8),
                    text=message,
                    author=self._name,
                    person=self.person,
                    at_ms=self.clock.now_ms(),
                ),
                origin=Origin(channel="console", target=self.session, place="this terminal"),
            )
        )
        return received.run

    async def resume(self, open_asks: list[AskRecord], run: RunId) -> bool:
        """Go on with a run that an earlier conversation left."""
        for record in open_asks:
            self.views.put_nowait(present(record, self.people, Limits()))
        return await self.follow(run)

    async def follow(self, run: RunId | None) -> bool:
        """Show what comes until the run ends."""
        while True:
            view = await self.views.get()
            match view:
                case RunNotice():
                    self.terminal.show(render.notice(view))
                    if run is None or view.run_id == run:
                        return True
                case AskView(open=True):
                    if not await self._ask(view):
                        return False
                case AskView():
                    self.show_closed(view)

    async def _ask(self, view: AskView) -> bool:
        """Show an ask and take the answer, unless it is decided elsewhere first. False: the person left."""
        while True:
            record = await self.load(view)
            if record is None or not record.open or record.revision != view.revision:
                return True  # its next view is on the way
            self.show(view)
            decision = await self._answer_or_news(record, view)
            if isinstance(decision, AskView):
                self.show_closed(decision)
                return True
            if decision is None:
                return False
            if await self.submit(record, decision):
                return True
            view = await self._fresh(view)

    async def _answer_or_news(self, record: AskRecord, view: AskView) -> AnyDecision | AskView | None:
        """The person's answer; or the view that closed the ask while they were thinking."""
        prompting = asyncio.ensure_future(
            Prompt(self.terminal, self.person, self.confirm).answer(record, view)
        )
        news = asyncio.ensure_future(self._closed(view))
        try:
            await asyncio.wait({prompting, news}, return_when=asyncio.FIRST_COMPLETED)
            return prompting.result() if prompting.done() else news.result()
        finally:
            prompting.cancel()
            news.cancel()

    async def _closed(self, asked: AskView) -> AskView:
        """Wait until a view says that this ask is closed; keep the others for later."""
        kept: list[AskView | RunNotice] = []
        try:
            while True:
                view = await self.views.get()
                if isinstance(view, AskView) and view.ask_id == asked.ask_id:
                    if not view.open:
                        self.terminal.show(Text(""))
                        return view
                    continue
                kept.append(view)
        finally:
            for view in kept:
                self.views.put_nowait(view)

    async def submit(self, record: AskRecord, decision: AnyDecision) -> bool:
        """Whether the answer counts, or another one was first; else the ask is shown again."""
        outcome = await self.submissions.submit(
            Submission(
                ask_id=record.id,
                revision=record.revision,
                person=self.person,
                decision=decision,
                channel="console",
                operation=f"console:{secrets.token_hex(12)}",
                digest=record.digest,
            )
        )
        self.terminal.show(Text(outcome.told))
        for name, problem in outcome.fields.items():
            self.terminal.show(Text(f"  {name}: {problem}"))
        return outcome.record is not None and not outcome.record.open

    async def load(self, view: AskView) -> AskRecord | None:
        stored = (await self.store.load([view.ask_id]))[0]
        return load_ask(stored.body) if stored else None

    async def _fresh(self, view: AskView) -> AskView:
        record = await self.load(view)
        return present(record, self.people, Limits()) if record else view

    def show(self, view: AskView) -> None:
        self.terminal.show(render.ask(view, zone=self._zone, now_ms=self.clock.now_ms()))

    def show_closed(self, view: AskView) -> None:
        """The decision once, and each new thing about what became of it."""
        decided, kind = self._told.get(view.ask_id, (False, None))
        now = self.clock.now_ms()
        if not decided:
            self.terminal.show(render.decided(view, zone=self._zone, now_ms=now))
        if (
            view.outcome is not None
            and view.outcome.kind is not kind
            and view.outcome.kind is not OutcomeKind.RUNNING
        ):
            self.terminal.show(render.outcome(view.outcome, zone=self._zone, now_ms=now))
        self._told[view.ask_id] = (True, view.outcome.kind if view.outcome else None)

    @property
    def _name(self) -> str:
        return "".join(self.people.names([self.person]))

    @property
    def _zone(self) -> tzinfo | None:
        person = self.people.get(self.person)
        return person.zone if person else None
