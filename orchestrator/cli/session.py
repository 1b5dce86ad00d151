"""An orchestrator for a command: the running one, or one embedded in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from container.engine.errors import EngineError
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.failures import CommandFailed
from orchestrator.logs import log_to
from orchestrator.ports.errors import StoreError
from orchestrator.settings import Settings
from tool_registry.errors import PortsideError

Say = Callable[[str], None]


@asynccontextmanager
async def orchestrator_for(
    settings: Settings, say: Say, *, needs_engine: bool = True
) -> AsyncGenerator[OperatorClient]:
    """A client of the orchestrator that answers on the home's socket; starts an embedded one when none does.

    Args:
        settings: which home, and how to start.
        say: told what is being made ready.
        needs_engine: without one, a command that launches nothing works on a machine with no engine.

    Raises:
        CommandFailed: it can't be started; the message says what to do.
    """
    if settings.api_socket.exists() and settings.operator_token_file.exists():
        async with OperatorClient(settings) as client:
            if await client.reachable():
                yield client
                return
    async with embedded(settings, say, needs_engine=needs_engine), OperatorClient(settings) as client:
        yield client


@asynccontextmanager
async def embedded(settings: Settings, say: Say, *, needs_engine: bool = True) -> AsyncGenerator[None]:
    """An orchestrator in this process, for as long as the context lasts.

    Raises:
        CommandFailed: as `orchestrator_for`.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (settings.home / "portside.log").open("a", encoding="utf-8") as log:
        log_to(log)
        async with _running(settings, say, needs_engine=needs_engine):
            yield


@asynccontextmanager
async def _running(settings: Settings, say: Say, *, needs_engine: bool) -> AsyncGenerator[None]:
    from orchestrator import main  # takes a second; a running orchestrator needs none of it

    try:
        engine = await main.open_engine(settings, needed=needs_engine)
        if needs_engine and not settings.image:
            await main.worker_image(settings, engine).ensure(say)
        orchestrator = await main.start(settings, engine)
    except (EngineError, PortsideError, StoreError, OSError) as error:
        raise CommandFailed(str(error)) from error
    try:
        yield
    finally:
        await orchestrator.close()
