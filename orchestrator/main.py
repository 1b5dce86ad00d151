"""The composition root: reads as the wiring diagram, and is the only module that sees everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
from starlette.types import ASGIApp

from container.adapters.docker.engine import DockerEngine
from container.engine.port import SandboxEngine
from orchestrator.adapters.blobs.files import FileBlobStore
from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.adapters.db.stores import Stores, open_stores
from orchestrator.adapters.egress.squid import SquidProxy
from orchestrator.adapters.files.watch import WatchedFolders
from orchestrator.adapters.ids.uuid7 import Uuid7Ids
from orchestrator.adapters.models.native_router import NativeRouter
from orchestrator.adapters.models.router import ModelRouter
from orchestrator.adapters.secrets.master_key import MasterKey
from orchestrator.adapters.secrets.sealing import AesGcmSealer
from orchestrator.adapters.sockets.unix import UnixJobSockets, UnixSocket
from orchestrator.domain.jobs import Job
from orchestrator.domain.plan import PlanRules
from orchestrator.home import operator_token, prepare_home, socket_root
from orchestrator.http.app import AppServices, create_app
from orchestrator.http.auth import SOCKET_JOB, OperatorGate
from orchestrator.http.operator_jobs import JobDefaults, OperatorServices
from orchestrator.http.operator_tools import ToolServices
from orchestrator.http.problems import problem_of
from orchestrator.http.tunnel_door import TunnelDoor
from orchestrator.http.worker_routes import WorkerServices
from orchestrator.ports.models import ModelProvider
from orchestrator.services.active_jobs import ActiveJobs
from orchestrator.services.audit_log import AuditLog
from orchestrator.services.budgets import Budgets
from orchestrator.services.catalogues import Catalogues
from orchestrator.services.contracts import Contracts
from orchestrator.services.egress import Egress, Told
from orchestrator.services.executions import ExecutionService
from orchestrator.services.first_catalogue import FirstCatalogue
from orchestrator.services.in_process import InProcessJobs
from orchestrator.services.jobs import JobParts, JobService
from orchestrator.services.launching import Launcher, LaunchSettings
from orchestrator.services.live_tools import LiveTools
from orchestrator.services.llm import ModelService
from orchestrator.services.membership import NetworkMembership
from orchestrator.services.native_models import NativeModelService
from orchestrator.services.network import NetworkService
from orchestrator.services.network_sweep import Arrivals, NetworkSweep
from orchestrator.services.network_tools import OWNER as NETWORK_OWNER
from orchestrator.services.network_tools import network_tools
from orchestrator.services.outputs import Outputs
from orchestrator.services.reports import WorkerReports
from orchestrator.services.secrets import SecretService
from orchestrator.services.starting_files import StartingFiles
from orchestrator.services.statistics import Statistics
from orchestrator.services.supervisor import Supervisor, SupervisorSettings
from orchestrator.services.timeline import Timeline
from orchestrator.services.tokens import TokenService
from orchestrator.services.tool_desk import ToolDesk
from orchestrator.settings import Settings
from orchestrator.wiring.egress import squid_settings
from orchestrator.wiring.engines import engine_places, image_of
from orchestrator.wiring.models import models_of, native_models_of, secret_text
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.mcp.config import load_config
from tool_registry.mcp.control import McpServerFile
from tool_registry.mcp.grants import Grants
from tool_registry.mcp.login import Logins
from tool_registry.mcp.servers import McpServers
from tool_registry.redaction import Redactor
from tool_registry.registry import Offer, ToolRegistry
from wasm_tools.cache import load_or_create_key
from wasm_tools.granted_host import Outside as GuestsOutside
from wasm_tools.loading import WasmFiles
from wasm_tools.runtime import WasmRuntime
from worker.clock import SystemClock
from worker.explainer import SubprocessExplainer
from worker.in_process import run_in_process

_BY_HAND_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """An orchestrator; close it to end it.

    Attributes:
        app: the ASGI application.
        registry: the tools; whoever embeds Portside adds its own here.
    """

    settings: Settings
    app: ASGIApp
    registry: ToolRegistry
    stack: AsyncExitStack

    async def close(self) -> None:
        """Stop; containers that run go on and are adopted by the next run."""
        await self.stack.aclose()


@dataclass(frozen=True, slots=True)
class Outside:
    """What an orchestrator is given beside its settings.

    Attributes:
        image: answers the image of jobs that name none, made ready if need be.
        models: providers in place of built-in ones, by the prefix of their models' names.
    """

    engine: SandboxEngine
    image: Callable[[], Awaitable[str]]
    models: Mapping[str, ModelProvider] = field(default_factory=dict[str, ModelProvider])


async def start(settings: Settings, engine: DockerEngine) -> Orchestrator:
    """Wire everything over a Docker engine, look after jobs and serve on `settings.api_socket`.

    `own_home` comes first.

    Raises:
        PortsideError, StoreError, OSError: it can't start; nothing is left running.
    """
    return await start_over(settings, Outside(engine, image_of(settings, engine)))


async def start_over(settings: Settings, outside: Outside) -> Orchestrator:
    """The same over any engine, which is closed at the end."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(outside.engine.close)
        return await _wire(settings, outside, stack)


async def open_desk(settings: Settings, *, tools: bool) -> Orchestrator:
    """Wire everything, but look after no job and serve on no socket: to look at what is there.

    Any number may be open beside a running orchestrator.

    Args:
        settings: which home.
        tools: load WASM tools and connect MCP servers.

    Raises:
        PortsideError, StoreError, OSError: as `start`.
    """
    async with AsyncExitStack() as stack:
        engine = DockerEngine(engine_places(settings)[0].endpoint)
        stack.push_async_callback(engine.close)
        base = await _open_base(settings, stack)
        desk = await _open_tools(base)
        if tools:
            await _fill(desk)
        outside = Outside(engine, image_of(settings, engine))
        app = await _application(base, desk, await _open_jobs(base, desk, outside))
        return Orchestrator(settings, app, desk.registry, stack.pop_all())


async def _wire(settings: Settings, outside: Outside, stack: AsyncExitStack) -> Orchestrator:
    base = await _open_base(settings, stack)
    tools = await _open_tools(base)
    await _fill(tools)
    live = LiveTools(_watch(settings), [tools.desk.refresh, tools.mcp_file.reload])
    live.start()
    stack.push_async_callback(live.close)
    jobs = await _open_jobs(base, tools, outside)
    app = await _application(base, tools, jobs)
    jobs.sockets.serve(app, TunnelDoor(jobs.tokens, jobs.egress))
    await jobs.supervisor.start()
    stack.push_async_callback(jobs.supervisor.close)
    sweep = NetworkSweep(tools.network, tools.arrivals.announce)
    sweep.start()
    stack.push_async_callback(sweep.close)
    in_process = _in_process(base, tools, jobs, app)
    await in_process.start()
    jobs.wakes.append(in_process.wake)
    stack.push_async_callback(in_process.close)
    api = UnixSocket(app, settings.api_socket, mode=0o600)
    await api.open()
    stack.push_async_callback(api.close)
    stack.callback(jobs.parts.timeline.close)
    return Orchestrator(settings, app, tools.registry, stack.pop_all())


async def _application(base: _Base, tools: _Tools, jobs: _Jobs) -> ASGIApp:
    gate = OperatorGate(await asyncio.to_thread(operator_token, base.settings.operator_token_file))
    return create_app(_services(base, tools, jobs, gate))


async def _fill(tools: _Tools) -> None:
    """Load the WASM tools and begin to connect the MCP servers."""
    await tools.desk.refresh()
    tools.mcp.start()


def _watch(settings: Settings) -> WatchedFolders:
    """Hints about the tools directory and the file of MCP servers; the database beside it says nothing."""

    def wanted(path: Path) -> bool:
        return path.parent == settings.tools_dir or path == settings.mcp_file

    return WatchedFolders([settings.home, settings.tools_dir], wanted)


@dataclass(frozen=True, slots=True)
class _Base:
    """Time, names and storage."""

    settings: Settings
    clock: SystemClock
    ids: Uuid7Ids
    instance: str
    stores: Stores
    blobs: FileBlobStore
    redactor: Redactor
    secrets: SecretService
    stack: AsyncExitStack


async def open_state(settings: Settings, clock: SystemClock) -> Stores:
    """The stores of a home, whose schema is left as it is.

    Raises:
        PortsideError, StoreError, OSError: the master key or the database can't be used.
    """
    master = await asyncio.to_thread(MasterKey.load, settings.home, secret_text(settings.master_key))
    return await open_stores(settings.database, sealer=AesGcmSealer(master), clock=clock)


async def open_wasm(settings: Settings, clock: SystemClock) -> WasmRuntime:
    """What compiles and runs WASM tools."""
    key = await asyncio.to_thread(load_or_create_key, settings.home / "keys" / "wasm-cache.key")
    return WasmRuntime(cache_dir=settings.cache_dir / "wasm", cache_key=key, clock=clock)


async def _open_base(settings: Settings, stack: AsyncExitStack) -> _Base:
    clock = SystemClock()
    instance = await asyncio.to_thread(prepare_home, settings.home)
    stores = await open_state(settings, clock)
    stack.push_async_callback(stores.close)
    await stores.database.migrate()
    redactor = Redactor(_known_secrets(settings))
    secrets = SecretService(stores.secrets, redactor)
    await secrets.learn_stored()
    return _Base(
        settings=settings,
        clock=clock,
        ids=Uuid7Ids(),
        instance=instance,
        stores=stores,
        blobs=FileBlobStore(settings.home / "blobs"),
        redactor=redactor,
        secrets=secrets,
        stack=stack,
    )


@dataclass(frozen=True, slots=True)
class _Tools:
    """The registry, what fills it, and what runs its tools."""

    registry: ToolRegistry
    executor: ToolExecutor
    desk: ToolDesk
    mcp: McpServers
    mcp_file: McpServerFile
    membership: NetworkMembership
    outputs: Outputs
    audit: AuditLog
    network: NetworkService
    arrivals: Arrivals


async def _open_tools(base: _Base) -> _Tools:
    settings, clock, stores = base.settings, base.clock, base.stores
    audit = AuditLog(stores.audit)
    base.stack.push_async_callback(audit.close)
    outputs = Outputs(base.blobs, stores.artifacts, clock, base.ids)
    network = NetworkService(SqlNetworkStore(stores.database), clock, base.ids)
    registry = ToolRegistry()
    arrivals = Arrivals()
    registry.replace(NETWORK_OWNER, [Offer(tool) for tool in network_tools(network, arrivals.announce)])
    around = Surroundings(
        clock=clock,
        audit=audit,
        redactor=base.redactor,
        keeper=outputs,
        explainer=SubprocessExplainer(),
        hosted=True,
    )
    wasm = await open_wasm(settings, clock)
    base.stack.push_async_callback(wasm.close)
    # No job keeps what a person asked for: it is answered whole, within reason.
    by_hand = ToolExecutor(
        registry, replace(around, hosted=False, keeper=None, max_output_bytes=_BY_HAND_BYTES)
    )
    executor = ToolExecutor(registry, around)
    outside = GuestsOutside(
        secret=stores.secrets.get,
        file=StartingFiles(stores.jobs, base.blobs).read,
        invoke=executor.execute,
    )
    desk = ToolDesk(registry, by_hand, WasmFiles(wasm, outside), base.ids, tools_dir=settings.tools_dir)
    mcp = McpServers(
        await asyncio.to_thread(load_config, settings.mcp_file),
        on_tools=lambda owner, offers, instructions: registry.replace(
            owner, offers, instructions=instructions
        ),
        resolve_secret=stores.secrets.get,
        grants=Grants(stores.secrets),
        on_secrets=base.secrets.learn_of_server,
    )
    base.stack.push_async_callback(mcp.close)
    logins = Logins(Grants(stores.secrets), stores.secrets.get)
    base.stack.push_async_callback(logins.close)
    mcp_file = McpServerFile(mcp, settings.mcp_file, logins=logins, resolve_secret=stores.secrets.get)
    membership = NetworkMembership(network)
    return _Tools(registry, executor, desk, mcp, mcp_file, membership, outputs, audit, network, arrivals)


@dataclass(frozen=True, slots=True)
class _Jobs:
    """Jobs, their tokens, sockets and sandboxes."""

    parts: JobParts
    tokens: TokenService
    sockets: UnixJobSockets
    egress: Egress
    supervisor: Supervisor
    models: ModelRouter
    native: NativeRouter
    wakes: list[Callable[[], None]]

    def wake(self) -> None:
        """A job changed: let whoever runs jobs look."""
        for wake in self.wakes:
            wake()


async def _open_jobs(base: _Base, tools: _Tools, outside: Outside) -> _Jobs:
    settings, stores = base.settings, base.stores
    timeline = Timeline(stores.events, base.clock, base.redactor)
    tools.arrivals.listen(timeline.wake_all)
    active = ActiveJobs(stores.jobs, base.clock)
    parts = JobParts(stores.jobs, active, base.blobs, stores.deliveries, timeline, base.clock, base.ids)
    tokens = TokenService(
        stores.signing_keys, active, base.clock, base.ids, lifetime_s=settings.token_lifetime_s
    )
    await tokens.load_keys()
    sockets = UnixJobSockets(socket_root(base.instance), mark=SOCKET_JOB)
    proxy = SquidProxy(squid_settings(settings), Told(timeline))
    base.stack.push_async_callback(proxy.close)
    base.stack.push_async_callback(sockets.close_all)
    egress = Egress(proxy)
    launcher = Launcher(
        parts,
        engine=outside.engine,
        tokens=tokens,
        sockets=sockets,
        egress=egress,
        settings=LaunchSettings(base.instance, outside.image, settings.stop_grace_s),
    )
    supervisor = Supervisor(
        parts,
        engine=outside.engine,
        launcher=launcher,
        sockets=sockets,
        membership=tools.membership,
        egress=egress,
        settings=SupervisorSettings(
            base.instance,
            PlanRules(
                settings.max_running_jobs,
                settings.max_running_jobs_per_network or settings.max_running_jobs,
                settings.register_timeout_s,
            ),
            stop_grace_s=settings.stop_grace_s,
        ),
    )
    models = models_of(settings, timeline, base.clock, outside.models)
    base.stack.push_async_callback(models.close)
    native = native_models_of(settings, models)
    base.stack.push_async_callback(native.close)
    return _Jobs(parts, tokens, sockets, egress, supervisor, models, native, [supervisor.wake])


def _services(base: _Base, tools: _Tools, jobs: _Jobs, gate: OperatorGate) -> AppServices:
    settings, stores = base.settings, base.stores
    budgets = Budgets(stores.jobs)
    reports = WorkerReports(
        jobs.parts,
        membership=tools.membership,
        secrets=base.secrets,
        sockets=jobs.sockets,
        registry=tools.registry,
        audit=tools.audit,
        wake=jobs.wake,
    )
    executions = ExecutionService(
        executor=tools.executor,
        registry=tools.registry,
        store=stores.executions,
        audit=tools.audit,
        clock=base.clock,
        runner=base.ids.new(),
        describe=problem_of,
    )
    return AppServices(
        worker=WorkerServices(
            jobs.tokens,
            reports,
            Catalogues(tools.registry),
            FirstCatalogue(tools.mcp_file, jobs.parts.timeline, wait_s=settings.tools_wait_s),
            tools.outputs,
        ),
        operators=OperatorServices(
            gate=gate,
            jobs=JobService(
                jobs.parts, jobs.wake, models=jobs.models, secrets=base.secrets, egress=jobs.egress
            ),
            timeline=jobs.parts.timeline,
            audit=stores.audit,
            audit_log=tools.audit,
            contracts=Contracts(stores.audit, tools.audit, jobs.parts.timeline),
            defaults=JobDefaults(settings.agent, settings.network, settings.model),
        ),
        tools=ToolServices(
            gate,
            tools.desk,
            tools.mcp_file,
            Statistics(stores.audit, tools.audit, tools.registry),
        ),
        executions=executions,
        secrets=base.secrets,
        models=ModelService(jobs.models, tools.outputs, tools.membership, budgets),
        native=NativeModelService(
            jobs.native,
            membership=tools.membership,
            budgets=budgets,
            timeline=jobs.parts.timeline,
            redactor=base.redactor,
            clock=base.clock,
        ),
        ready=lambda: _missing(stores, jobs.supervisor),
        ids=base.ids,
    )


def _in_process(base: _Base, tools: _Tools, jobs: _Jobs, app: ASGIApp) -> InProcessJobs:
    async def run(job: Job, token: str) -> object:
        return await run_in_process(
            httpx.ASGITransport(app),
            job_id=job.id,
            attempt=job.attempt,
            token=token,
            clock=base.clock,
            output_dir=base.settings.cache_dir / "outputs" / job.id,
        )

    return InProcessJobs(jobs.parts, tokens=jobs.tokens, membership=tools.membership, run=run)


async def _missing(stores: Stores, supervisor: Supervisor) -> str:
    """What keeps the service from working; "" when nothing does."""
    if not await stores.database.check():
        return "the database schema is not current"
    return supervisor.engine_error


def _known_secrets(settings: Settings) -> dict[str, str]:
    keys = {"OPENAI_API_KEY": settings.openai_api_key, "ANTHROPIC_API_KEY": settings.anthropic_api_key}
    return {name: key.get_secret_value() for name, key in keys.items() if key is not None}
