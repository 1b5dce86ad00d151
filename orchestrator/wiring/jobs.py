"""Jobs, their tokens, sockets and sandboxes."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import httpx
from starlette.types import ASGIApp

from container.engine.port import SandboxEngine
from container.engine.sandbox import WorkerStart
from orchestrator.adapters.egress.squid import SquidProxy
from orchestrator.adapters.models.native_router import NativeRouter
from orchestrator.adapters.models.router import ModelRouter
from orchestrator.adapters.sockets.unix import UnixJobSockets
from orchestrator.domain.jobs import Job
from orchestrator.domain.model_choice import NoModelChosen, resolve_model
from orchestrator.domain.plan import PlanRules
from orchestrator.home import socket_root
from orchestrator.http.auth import SOCKET_JOB
from orchestrator.ports.models import ModelProvider
from orchestrator.services.active_jobs import ActiveJobs
from orchestrator.services.egress import Egress, Told
from orchestrator.services.in_process import InProcessJobs
from orchestrator.services.jobs import JobParts, JobService
from orchestrator.services.launching import Launcher, LaunchSettings
from orchestrator.services.network_autostart import Autostart, AutostartRules
from orchestrator.services.recovery import Recovery, RecoverySettings
from orchestrator.services.supervisor import Supervisor, SupervisorSettings
from orchestrator.services.timeline import Timeline
from orchestrator.services.tokens import TokenService
from orchestrator.settings import Settings
from orchestrator.wiring.base import Base
from orchestrator.wiring.egress import squid_settings
from orchestrator.wiring.models import models_of, native_models_of
from orchestrator.wiring.tools import Tools
from worker.in_process import run_in_process


@dataclass(frozen=True, slots=True)
class Outside:
    """What an orchestrator is given beside its settings.

    Attributes:
        start_in: answers how the worker is started in an image; empty names that of jobs that name none.
        models: providers in place of built-in ones, by the prefix of their models' names.
    """

    engine: SandboxEngine
    start_in: Callable[[str], Awaitable[WorkerStart]]
    models: Mapping[str, ModelProvider] = field(default_factory=dict[str, ModelProvider])


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs, their tokens, sockets and sandboxes."""

    parts: JobParts
    tokens: TokenService
    sockets: UnixJobSockets
    egress: Egress
    supervisor: Supervisor
    models: ModelRouter
    native: NativeRouter
    service: JobService
    autostart: Autostart
    wakes: list[Callable[[], None]]

    def wake(self) -> None:
        """A job changed: let whoever runs jobs look."""
        for wake in self.wakes:
            wake()


async def open_jobs(base: Base, tools: Tools, outside: Outside) -> Jobs:
    """Put together what runs jobs; nothing runs yet."""
    settings, stores = base.settings, base.stores
    timeline = Timeline(stores.events, base.clock, base.redactor)
    tools.arrivals.listen(timeline.wake_all)
    active = ActiveJobs(stores.jobs, base.clock)
    parts = JobParts(stores.jobs, active, base.blobs, stores.deliveries, timeline, base.clock, base.ids)
    tokens = TokenService(base.signer, active, base.clock, lifetime_s=settings.token_lifetime_s)
    sockets = UnixJobSockets(socket_root(base.instance), mark=SOCKET_JOB)
    proxy = SquidProxy(squid_settings(settings), Told(timeline))
    base.stack.push_async_callback(proxy.close)
    egress = Egress(proxy)
    base.stack.push_async_callback(sockets.close_all)
    launcher = Launcher(
        parts,
        engine=outside.engine,
        tokens=tokens,
        sockets=sockets,
        egress=egress,
        settings=LaunchSettings(base.instance, outside.start_in, settings.stop_grace_s),
    )
    supervisor = Supervisor(
        parts,
        engine=outside.engine,
        launcher=launcher,
        recovery=Recovery(
            base.blobs,
            timeline,
            engine=outside.engine,
            settings=RecoverySettings(base.instance, outside.start_in, settings.cache_dir / "recovery"),
        ),
        sockets=sockets,
        membership=tools.membership,
        egress=egress,
        settings=_supervision(base),
    )
    models = models_of(settings, timeline, base.clock, outside.models)
    base.stack.push_async_callback(models.close)
    native = native_models_of(settings, models)
    base.stack.push_async_callback(native.close)
    wakes = [supervisor.wake]

    def wake() -> None:
        for one in wakes:
            one()

    service = JobService(
        parts, wake, models=models, secrets=base.secrets, egress=egress, membership=tools.membership
    )
    rules = AutostartRules(_most_per_network(settings), lambda: _usual_model(settings))
    autostart = Autostart(tools.network_store, service, base.clock, base.ids, rules)
    return Jobs(parts, tokens, sockets, egress, supervisor, models, native, service, autostart, wakes)


def _supervision(base: Base) -> SupervisorSettings:
    settings = base.settings
    rules = PlanRules(settings.max_running_jobs, _most_per_network(settings), settings.register_timeout_s)
    return SupervisorSettings(base.instance, rules, stop_grace_s=settings.stop_grace_s)


def _most_per_network(settings: Settings) -> int:
    return settings.max_running_jobs_per_network or settings.max_running_jobs


def _usual_model(settings: Settings) -> str:
    """The model of agents that name none; "" when nothing names one."""
    if settings.model:
        return settings.model
    try:
        return resolve_model(None, os.environ).model
    except (NoModelChosen, ValueError):
        return ""


def in_process_of(base: Base, tools: Tools, jobs: Jobs, app: ASGIApp) -> InProcessJobs:
    """What runs the jobs without a container, over the same application."""

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
