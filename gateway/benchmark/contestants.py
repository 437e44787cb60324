"""Signoff, and the libraries that pause a run for a person too: each as its documentation says, each safe on the disk.

Owns how each does one cycle. What it does in it, and with which texts, is `work`'s.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.benchmark import work
from gateway.benchmark.contest import Cycle
from gateway.benchmark.house import OpenHouse, gated_agent
from gateway.benchmark.libraries import library


@dataclass(frozen=True, slots=True)
class Signoff:
    """The whole gateway: intake, worker, timers, publisher and desk in this process, over the embedded server."""

    open_house: OpenHouse
    name: str = "signoff"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Cycle]:
        async with self.open_house(gated_agent()) as house:

            async def cycle(session: str) -> None:
                await house.resume(*await house.pause(session))

            yield cycle


@dataclass(frozen=True, slots=True)
class LangGraphSqlite:
    """`interrupt` and `Command(resume=…)` with the SQLite checkpointer, default durability, every commit synced."""

    folder: Path
    name: str = "langgraph-sqlite"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Cycle]:
        command = library("langgraph.types").Command
        async with self.graph() as graph:

            async def cycle(session: str) -> None:
                thread = {"configurable": {"thread_id": session}}
                await graph.ainvoke({"messages": [{"role": "user", "content": work.REQUEST}]}, thread)
                await graph.ainvoke(command(resume=True), thread)

            yield cycle

    @asynccontextmanager
    async def graph(self) -> AsyncGenerator[Any]:
        saver = library("langgraph.checkpoint.sqlite.aio").AsyncSqliteSaver
        async with saver.from_conn_string(str(self.folder / "langgraph.sqlite")) as checkpointer:
            await checkpointer.setup()  # switches to write-ahead logging
            await checkpointer.conn.execute("PRAGMA synchronous=FULL")
            yield _graph().compile(checkpointer=checkpointer)


def _graph() -> Any:
    graphs, messages, types = (
        library(module) for module in ("langgraph.graph", "langchain_core.messages", "langgraph.types")
    )

    async def model(state: dict[str, Any]) -> dict[str, Any]:
        if isinstance(state["messages"][-1], messages.ToolMessage):
            return {"messages": [messages.AIMessage(work.DONE)]}
        call = {"id": "t1", "name": work.TOOL, "args": {"order": work.ORDER, "amount": work.AMOUNT}}
        return {"messages": [messages.AIMessage("", tool_calls=[call])]}

    async def tools(state: dict[str, Any]) -> dict[str, Any]:
        (call,) = state["messages"][-1].tool_calls
        approved = types.interrupt({"action": call["name"], "args": call["args"]})
        content = work.refunded(**call["args"]) if approved else "declined"
        return {"messages": [messages.ToolMessage(content, tool_call_id=call["id"])]}

    def then(state: dict[str, Any]) -> str:
        return "tools" if state["messages"][-1].tool_calls else graphs.END

    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(graphs.START, "model")
    graph.add_conditional_edges("model", then, ["tools", graphs.END])
    graph.add_edge("tools", "model")
    return graph


@dataclass(frozen=True, slots=True)
class PydanticAi:
    """Deferred tools; the message history as one value in the same server that Signoff uses, as synced as Signoff's."""

    url: str
    name: str = "pydantic-ai"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Cycle]:
        async with self.desk() as desk:

            async def cycle(session: str) -> None:
                await desk.pause(session)
                await desk.resume(session)

            yield cycle

    @asynccontextmanager
    async def desk(self) -> AsyncGenerator[PydanticAiDesk]:
        client = library("redis.asyncio").Redis.from_url(self.url, protocol=2)
        try:
            yield PydanticAiDesk(client, _deferring_agent())
        finally:
            await client.aclose()


@dataclass(frozen=True, slots=True)
class PydanticAiDesk:
    client: Any
    agent: Any

    async def pause(self, session: str, history: list[Any] | None = None) -> None:
        paused = await self.agent.run(work.REQUEST, message_history=history)
        await self.client.set(key_of(session), paused.all_messages_json())

    async def resume(self, session: str) -> None:
        """The decision goes straight into the run: nothing stores it by itself."""
        pai = library("pydantic_ai")
        history = self.read(await self.client.get(key_of(session)))
        approvals = {call.tool_call_id: True for call in history[-1].tool_calls}
        ended = await self.agent.run(
            message_history=history, deferred_tool_results=pai.DeferredToolResults(approvals=approvals)
        )
        await self.client.set(key_of(session), ended.all_messages_json())

    def read(self, blob: bytes) -> list[Any]:
        return library("pydantic_ai.messages").ModelMessagesTypeAdapter.validate_json(blob)


def key_of(session: str) -> str:
    return f"pydantic-ai:{session}"


def _deferring_agent() -> Any:
    pai, models, messages = (
        library(module) for module in ("pydantic_ai", "pydantic_ai.models.function", "pydantic_ai.messages")
    )

    async def model(history: list[Any], _: Any) -> Any:
        if isinstance(history[-1].parts[-1], messages.ToolReturnPart):
            return messages.ModelResponse([messages.TextPart(work.DONE)])
        arguments = {"order": work.ORDER, "amount": work.AMOUNT}
        return messages.ModelResponse([messages.ToolCallPart(work.TOOL, arguments)])

    agent = pai.Agent(models.FunctionModel(model), output_type=[str, pai.DeferredToolRequests])

    async def refund(order: str, amount: int) -> str:
        """Refund an order."""
        return work.refunded(order, amount)

    agent.tool_plain(requires_approval=True)(refund)
    return agent
