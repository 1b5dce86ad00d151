"""What `portside doctor` looks at: every part tried for real, each failure with what to do about it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from container.adapters.docker.discovery import START_THAT, discover
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.packages import install_docker
from container.adapters.docker.private_daemon import PrivateDaemon
from container.engine.errors import EngineError, RuntimeUnknown
from container.engine.sandbox import WorkerStart
from orchestrator.adapters.egress.squid import SquidProxy
from orchestrator.adapters.files.agent_text import FileAgentText
from orchestrator.domain.model_choice import NoModelChosen, resolve_model
from orchestrator.home import prepare_home
from orchestrator.ports.agent_file import AgentFileUnreadable
from orchestrator.ports.egress import Carried, ProxyFailed
from orchestrator.ports.errors import StoreError
from orchestrator.ports.models import ModelError
from orchestrator.probe import Expected, probe
from orchestrator.services.agent_file import AgentFileError, read_agents
from orchestrator.settings import Settings
from orchestrator.wiring import base, engines
from orchestrator.wiring.egress import squid_settings
from orchestrator.wiring.models import check_model
from tool_registry.context import ToolContext
from tool_registry.errors import PortsideError
from tool_registry.mcp.config import load_config
from tool_registry.mcp.grants import Grants
from tool_registry.mcp.servers import McpServers
from tool_registry.mcp.status import ServerState
from tool_registry.registry import Offer, Replaced
from tool_registry.visibility import ToolState
from wasm_tools.loading import WasmFiles
from worker.clock import SystemClock

CALC = Path(__file__).resolve().parents[1] / "wasm_tools" / "guests" / "calc" / "calc.wasm"
Say = Callable[[str], None]


class Verdict(StrEnum):
    """What a check found."""

    GOOD = "good"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome.

    Attributes:
        fix: what to do, for a bad one.
    """

    check: str
    verdict: Verdict
    detail: str
    fix: str = ""


async def diagnose(settings: Settings) -> AsyncIterator[Finding]:
    """Every check, in the order in which parts depend on one another; only the home is made."""
    try:
        await asyncio.to_thread(prepare_home, settings.home)
    except OSError as error:
        yield _bad("home", f"{settings.home}: {error.strerror}", "set PORTSIDE_HOME to a directory of yours")
        return
    yield _good("home", str(settings.home))
    async for finding in _engine(settings):
        yield finding
    yield await _egress(settings)
    yield await _database(settings)
    yield _model(settings)
    async for finding in _agents(settings):
        yield finding
    async for finding in _mcp(settings):
        yield finding
    async for finding in _wasm(settings):
        yield finding


async def repair(settings: Settings, say: Say) -> None:
    """Get an engine, a private one as root where none answers, and the worker image on it.

    Raises:
        EngineError: it can't be done here; the message says what to type.
    """
    await asyncio.to_thread(prepare_home, settings.home)
    found = await discover(engines.engine_places(settings))
    if settings.engine_url:
        found.require()  # an engine of our own would not be the one that was asked for
    if found.endpoint is None:
        say("no container engine answers: starting a private one, for this home only")
        if shutil.which("dockerd") is None:
            say("installing docker.io with apt")
            await asyncio.to_thread(install_docker)
        daemon = PrivateDaemon(settings.engine_dir)
        await asyncio.to_thread(daemon.start)
        say(f"it answers at {daemon.endpoint}; end it with: {daemon.stop_command}")
    if settings.image:
        return
    engine = await engines.open_engine(settings)
    try:
        await engines.worker_image(settings, engine).ensure(say)
    finally:
        await engine.close()


async def _engine(settings: Settings) -> AsyncIterator[Finding]:
    found = await discover(engines.engine_places(settings))
    if found.endpoint is None:
        tried = "; ".join(f"{at.source}: {reason}" for at, reason in found.silent)
        fix = START_THAT if settings.engine_url else "start Docker or Podman, or type: portside doctor --fix"
        yield _bad("engine", f"none answers: {tried}", fix)
        return
    engine = engines.engine_at(settings, found.endpoint)
    try:
        about = await engine.describe()
        seen = (
            f"{about.name} {about.version} at {about.endpoint} (from {found.source}), runtime {about.runtime}"
        )
        yield _good("engine", seen)
        for limit, why in about.unenforced.items():
            yield Finding("limits", Verdict.NOTE, f"{limit} is not enforced: {why}")
        for note in about.notes:
            yield Finding("isolation", Verdict.NOTE, note)
        async for finding in _image_and_sandbox(settings, engine):
            yield finding
    except RuntimeUnknown as error:
        yield _bad(
            "runtime", error.message, "unset PORTSIDE_SANDBOX_RUNTIME, or give the engine this runtime"
        )
    except EngineError as error:
        yield _bad("engine", error.message, "look at the engine's log")
    finally:
        await engine.close()


async def _image_and_sandbox(settings: Settings, engine: DockerEngine) -> AsyncIterator[Finding]:
    if settings.image:
        start = await engines.starts_of(settings, engine).start_in("")
        brought = "; it gets a worker brought along" if start.kit else ""
        yield _good("image", f"{start.image} is there (PORTSIDE_IMAGE){brought}")
    else:
        status = await engines.worker_image(settings, engine).status()
        start = WorkerStart(status.tag)
        if not status.present:
            yield _bad("image", status.message.partition(". ")[0], "portside image build")
            return
        yield _good("image", status.message)
        if status.stale:
            older = f"{len(status.stale)} older ones take room; remove them: portside image prune"
            yield Finding("image", Verdict.NOTE, older)
    try:
        bounded = "disk_bytes" not in (await engine.describe()).unenforced
        expected = Expected(
            settings.disk_bytes if bounded else None,
            filtered=settings.sandbox_runtime != "runsc",  # it answers system calls itself
        )
        facts = await probe(engine, start, expected)
    except (EngineError, OSError) as error:
        yield _bad(
            "sandbox", f"a container of {start.image} told nothing: {error}", "look at the engine's log"
        )
        return
    for name, fact in facts.items():
        yield _good(name, fact.seen) if fact.good else _bad(name, fact.seen, fact.fix)


async def _egress(settings: Settings) -> Finding:
    """Not everybody allows hosts: without squid all else works."""
    squid = squid_settings(settings)
    if missing := squid.missing():
        return Finding("allowed hosts", Verdict.NOTE, missing)
    with tempfile.TemporaryDirectory(prefix="portside-") as folder:
        proxy = SquidProxy(replace(squid, directory=Path(folder)), _unheard)
        try:
            await proxy.admit("doctor", ())
        except ProxyFailed as error:
            return _bad(
                "allowed hosts", str(error), "reinstall squid, or name another with PORTSIDE_EGRESS_SQUID"
            )
        finally:
            await proxy.close()
    return _good("allowed hosts", "squid was started and answered")


async def _unheard(_carried: Carried) -> None:
    """Nobody connects through it."""


async def _database(settings: Settings) -> Finding:
    where = settings.database.partition("://")[0]
    try:
        stores = await base.open_state(settings, SystemClock())
        try:
            current = await stores.database.check()
        finally:
            await stores.close()
    except (StoreError, PortsideError, OSError) as error:
        return _bad("database", str(error), "check PORTSIDE_DATABASE_URL and that its server runs")
    # The next start migrates: an older or empty schema is nothing to repair.
    return _good(
        "database", f"{where} answers; its schema is {'current' if current else 'made at the next start'}"
    )


def _model(settings: Settings) -> Finding:
    try:
        choice = resolve_model(None, os.environ)
        check_model(settings, choice.model)
    except (NoModelChosen, ValueError, ModelError) as error:
        return _bad("model", str(error), "set a key, or name a model with --model or PORTSIDE_MODEL")
    return _good("model", f"{choice.model} ({choice.reason})")


async def _agents(settings: Settings) -> AsyncIterator[Finding]:
    """The file of agents, where there is one."""
    file = FileAgentText(settings.agents_file)
    try:
        text = await file.read()
        if text is None:
            return
        networks = read_agents(text, source=file.name)
    except AgentFileUnreadable as error:
        yield _bad("agents", f"{file.name}: {error}", "make it a text that you may read")
    except AgentFileError as error:
        yield _bad("agents", str(error), "repair it; until then agents stay as they are")
    else:
        yield _good("agents", f"{sum(map(len, networks.values()))} in {file.name}")


async def _mcp(settings: Settings) -> AsyncIterator[Finding]:
    try:
        config = await asyncio.to_thread(load_config, settings.mcp_file)
        stores = await base.open_state(settings, SystemClock())
    except (PortsideError, StoreError, OSError) as error:
        yield _bad("mcp", str(error), f"repair {settings.mcp_file}")
        return
    servers = McpServers(
        config, on_tools=_ignored, resolve_secret=stores.secrets.get, grants=Grants(stores.secrets)
    )
    try:
        enabled = [(name, one) for name, one in config.servers.items() if one.enabled]
        for tried in await asyncio.gather(*(servers.test(name, one) for name, one in enabled)):
            status = tried.status
            check = f"mcp {status.name}"
            if status.reason or status.state is ServerState.FAILED:
                fix = f"repair it in {settings.mcp_file}, then: portside mcp test {status.name}"
                yield _bad(check, status.reason or status.last_error, fix)
            else:
                yield _good(check, f"{status.tool_count} tools, protocol {status.protocol_version}")
            for problem in status.problems:
                yield Finding(check, Verdict.NOTE, problem)
    finally:
        await stores.close()


def _ignored(owner: str, offers: Sequence[Offer], instructions: str) -> Replaced:  # noqa: ARG001 - as the protocol names them
    """A test's tools are offered to nobody."""
    return Replaced((), (), ())


async def _wasm(settings: Settings) -> AsyncIterator[Finding]:
    runtime = await base.open_wasm(settings, SystemClock())
    try:
        files = WasmFiles(runtime)
        calc = await files.load(CALC)
        if calc.state is ToolState.ACTIVE:
            context = ToolContext("doctor", "doctor", agent="doctor", grants=frozenset())
            output = await calc.tool.execute({"expression": "6 * 7"}, context)
            seen = f"a guest was started and answered {output.result}"
            yield Finding("wasm", Verdict.BAD if output.is_error else Verdict.GOOD, seen)
        else:
            yield _bad("wasm", calc.reason, "reinstall Portside: its own WASM tool can't be started")
        for offer in await files.load_directory(settings.tools_dir):
            if offer.state is not ToolState.ACTIVE:
                name = offer.tool.definition.name
                yield _bad(f"wasm {name}", offer.reason, f"replace it, or type: portside tools remove {name}")
    except PortsideError as error:
        yield _bad("wasm", error.message, "see the log")
    finally:
        await runtime.close()


def _good(check: str, detail: str) -> Finding:
    return Finding(check, Verdict.GOOD, detail)


def _bad(check: str, detail: str, fix: str) -> Finding:
    return Finding(check, Verdict.BAD, detail, fix)
