"""Calls a tool's function, and keeps a blocking one off the event loop.

Owns the thread. Time-outs are the caller's: a thread cannot be stopped, only given up.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from threading import Thread


async def invoke(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Call a function and await what it returns, if that can be awaited."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    result = await _in_thread(partial(function, **arguments))
    return await result if inspect.isawaitable(result) else result


async def _in_thread(call: Callable[[], object]) -> object:
    # Each call has a thread of its own. In asyncio's pool, calls that were given up keep its places, and one that
    # never got a place would start later: after its time-out, and after people were asked whether it happened.
    future: Future[object] = Future()
    context = contextvars.copy_context()
    Thread(target=_work, args=(future, partial(context.run, call)), name="signoff-tool", daemon=True).start()
    return await asyncio.wrap_future(future)


def _work(future: Future[object], call: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except (StopIteration, SystemExit, KeyboardInterrupt) as error:
        # The first cannot be put into a future, the others would end the process from a thread.
        future.set_exception(RuntimeError(f"the tool raised {type(error).__name__}"))
    except BaseException as error:
        future.set_exception(error)
