"""An orchestrator for a command: the running one, one embedded in this process, or a desk that only looks."""

from __future__ import annotations

import asyncio
import gc
import resource
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from container.engine.errors import EngineError
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.failures import CommandFailed
from orchestrator.errors import HomeTaken, HomeUnusable
from orchestrator.home import own_home, prepare_home
from orchestrator.logs import log_to
from orchestrator.ports.errors import StoreError
from orchestrator.ports.models import ModelError
from orchestrator.settings import Settings
from tool_registry.errors import PortsideError

if TYPE_CHECKING:
    from orchestrator.main import DockerEngine, Orchestrator

Say = Callable[[str], None]

MCP_WAIT_S = 10.0
_TAKEN_WAIT_S = 30.0
_POLL_S = 0.1
_OPEN_FILES = 65_536


@dataclass(frozen=True, slots=True)
class Needs:
    """What an embedded orchestrator must have before it is started.

    Attributes:
        engine: a container engine that answers, and the worker image on it.
        model: one that can answer here; "" for none.
        tools: every MCP server has answered or failed, within ten seconds.
        egress: what carries connections to allowed hosts.
    """

    engine: bool = True
    model: str = ""
    tools: bool = True
    egress: bool = False


async def running(settings: Settings) -> bool:
    """Whether an orchestrator answers on the home's socket."""
    if not (settings.api_socket.exists() and settings.operator_token_file.exists()):
        return False
    async with OperatorClient.over_socket(settings) as client:
        return await client.reachable()


@asynccontextmanager
async def orchestrator_for(
    settings: Settings, say: Say, needs: Needs | None = None
) -> AsyncGenerator[OperatorClient]:
    """A client of an orchestrator that runs jobs: the one that answers, else one embedded here.

    Args:
        settings: which home, and how to start.
        say: told what is being made ready.
        needs: of an embedded one.

    Raises:
        CommandFailed: it can't be started; the message says what to do.
    """
    needs = needs or Needs()
    usable(settings)
    deadline_s = asyncio.get_running_loop().time() + _TAKEN_WAIT_S
    while not await running(settings):
        try:
            async with (
                embedded(settings, say, needs, log=settings.home / "portside.log"),
                OperatorClient.over_socket(settings, embedded=True) as client,
            ):
                if needs.tools:
                    await tools_connected(client, say)
                yield client
                return
        except HomeTaken as error:
            # It is starting or ending: soon it answers, or is gone.
            if asyncio.get_running_loop().time() > deadline_s:
                raise CommandFailed(
                    f"{error.message} and does not answer; end it, or use another PORTSIDE_HOME"
                ) from None
            await asyncio.sleep(_POLL_S)
    async with OperatorClient.over_socket(settings) as client:
        yield client


@asynccontextmanager
async def desk_for(settings: Settings, say: Say, *, tools: bool = False) -> AsyncGenerator[OperatorClient]:
    """A client of the orchestrator that answers, else of a desk: nothing is launched, adopted or ended.

    Raises:
        CommandFailed: the state can't be opened.
    """
    usable(settings)
    if await running(settings):
        async with OperatorClient.over_socket(settings) as client:
            yield client
        return
    from orchestrator import main  # takes a second; a running orchestrator needs none of it

    with logging_to(settings.home / "portside.log"):
        try:
            desk = await main.open_desk(settings, tools=tools)
        except (PortsideError, StoreError, OSError) as error:
            raise CommandFailed(str(error)) from error
        try:
            async with OperatorClient.over_app(settings, desk.app) as client:
                if tools:
                    await tools_connected(client, say)
                yield client
        finally:
            await desk.close()


@asynccontextmanager
async def embedded(
    settings: Settings, say: Say, needs: Needs, *, log: Path | IO[str]
) -> AsyncGenerator[Orchestrator]:
    """An orchestrator in this process, for as long as the context lasts.

    Raises:
        HomeTaken: another one looks after this home.
        CommandFailed: as `orchestrator_for`.
    """
    usable(settings)
    with logging_to(log):
        allow_open_files()
        engine = await _ready(settings, say, needs)
        # Closed here unless it was handed over: an engine holds threads.
        try:
            with own_home(settings.home):
                orchestrator = await _started(settings, engine)
                gc.freeze()  # what was loaded up to here stays: no collection need walk through it again
                try:
                    yield orchestrator
                finally:
                    await orchestrator.close()
        except HomeTaken:
            await engine.close()
            raise
        except HomeUnusable as error:
            await engine.close()
            raise CommandFailed(error.message) from None


def allow_open_files(wanted: int = _OPEN_FILES) -> None:
    """Raise the soft bound of open files as far as it may be: every connection of every job is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def usable(settings: Settings) -> None:
    """Make the state directory ready.

    Raises:
        CommandFailed: it can't be used.
    """
    try:
        prepare_home(settings.home)
    except OSError as error:
        raise CommandFailed(
            f"the state directory {settings.home} can't be used: {error.strerror}: {error.filename};"
            " set PORTSIDE_HOME to a directory of your own"
        ) from None


async def make_ready(settings: Settings, say: Say, needs: Needs) -> None:
    """Check and make ready what an orchestrator of this home will need, and start none.

    Raises:
        CommandFailed: as `orchestrator_for`.
    """
    engine = await _ready(settings, say, needs)
    await engine.close()


async def _ready(settings: Settings, say: Say, needs: Needs) -> DockerEngine:
    """Everything that can fail before anything runs; answers the engine."""
    from orchestrator.wiring import engines  # takes a second; a running orchestrator needs none of it
    from orchestrator.wiring.egress import check_egress
    from orchestrator.wiring.models import check_model

    try:
        prepare_home(settings.home)
        if needs.model:
            check_model(settings, needs.model)
        if needs.egress:
            check_egress(settings)
        engine = await engines.open_engine(settings, needed=needs.engine)
        try:
            if needs.engine and not settings.image:
                await engines.worker_image(settings, engine).ensure(say)
        except EngineError:
            await engine.close()
            raise
    except (EngineError, ModelError, PortsideError, OSError) as error:
        raise CommandFailed(str(error)) from error
    return engine


async def _started(settings: Settings, engine: DockerEngine) -> Orchestrator:
    from orchestrator import main  # as above

    try:
        return await main.start(settings, engine)
    except (EngineError, PortsideError, StoreError, OSError) as error:
        raise CommandFailed(str(error)) from error


@contextmanager
def logging_to(log: Path | IO[str]) -> Generator[None]:
    """Send this process's log to a file, which is made, or to a stream."""
    if not isinstance(log, Path):
        log_to(log)
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("a", encoding="utf-8") as stream:
        log_to(stream)
        yield


async def tools_connected(client: OperatorClient, say: Say, *, within_s: float = MCP_WAIT_S) -> None:
    """Wait until no MCP server is about to connect, so that the first catalogue is whole."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + within_s
    told = False
    while waiting := [one["name"] for one in await client.get("/api/v1/mcp") if one["state"] == "connecting"]:
        if loop.time() > deadline_s:
            say(f"going on without {', '.join(waiting)}: no answer yet; their tools come when they do")
            return
        if not told:
            say(f"waiting for MCP servers: {', '.join(waiting)}")
            told = True
        await asyncio.sleep(_POLL_S)
