"""`signoff serve`: the gateway as a process to deploy."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import click

from gateway.app import Gateway, build, connected
from gateway.cli.running import Refused, run
from gateway.config import Config, load
from gateway.errors import SignoffError
from gateway.queues import runs_of
from gateway.server import Checks, listening, make_server
from gateway.telemetry import configure, logger


@click.command()
@click.option("--config", "path", type=click.Path(), help="The configuration, signoff.toml unless told.")
def serve(path: str | None) -> None:
    """Serve the configured agents until told to stop."""
    configure(sys.stderr)
    try:
        config = load(Path(path) if path else None)
    except SignoffError as error:
        raise Refused(error) from error
    run(_serve(config))


async def _serve(config: Config) -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with connected(config, own=True) as connection:
        gateway = build(config, connection, channels={})
        async with (
            gateway.running(),
            listening(make_server(_checks(gateway)), config.listen.host, config.listen.port) as (host, port),
        ):
            logger.info("serving", agent=",".join(gateway.agents), address=f"http://{host}:{port}")
            await stopping.wait()
            logger.info("draining", count=sum(consumer.active for consumer in gateway.consumers))
    logger.info("stopped")
    return 0


def _checks(gateway: Gateway) -> Checks:
    store, queues = gateway.connection.store, [runs_of(name) for name in gateway.agents]

    async def oldest_due_ms() -> int | None:
        due = [depth.oldest_due_ms for depth in await store.queue_depths(queues)]
        oldest = min((at for at in due if at is not None), default=None)
        return None if oldest is None else max(0, await store.now_ms() - oldest)

    return Checks(
        store=store.now_ms, worker=lambda: gateway.worker.consumer.serving, oldest_due_ms=oldest_due_ms
    )
