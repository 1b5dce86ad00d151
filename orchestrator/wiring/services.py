"""What the routes are served by."""

from __future__ import annotations

from orchestrator.adapters.db.stores import Stores
from orchestrator.http.app import AppServices
from orchestrator.http.auth import OperatorGate
from orchestrator.http.operator_jobs import JobDefaults, OperatorServices
from orchestrator.http.operator_network import NetworkServices
from orchestrator.http.operator_tools import ToolServices
from orchestrator.http.problems import problem_of
from orchestrator.http.worker_routes import WorkerServices
from orchestrator.services.agent_desk import AgentDesk
from orchestrator.services.budgets import Budgets
from orchestrator.services.catalogues import Catalogues
from orchestrator.services.contracts import Contracts
from orchestrator.services.executions import ExecutionService
from orchestrator.services.first_catalogue import FirstCatalogue
from orchestrator.services.llm import ModelService
from orchestrator.services.native_models import NativeModelService
from orchestrator.services.network_overview import NetworkOverview
from orchestrator.services.network_people import NetworkPeople
from orchestrator.services.network_signatures import NetworkSignatures
from orchestrator.services.reports import WorkerReports
from orchestrator.services.statistics import Statistics
from orchestrator.services.supervisor import Supervisor
from orchestrator.wiring.base import Base
from orchestrator.wiring.jobs import Jobs
from orchestrator.wiring.mcp import mcp_of
from orchestrator.wiring.tools import Tools


def services_of(base: Base, tools: Tools, jobs: Jobs, gate: OperatorGate) -> AppServices:
    """Hand the routes their services."""
    settings, stores = base.settings, base.stores
    budgets = Budgets(stores.jobs)
    agents = AgentDesk(tools.network.agents, tools.agent_file, jobs.service, base.clock)
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
        worker=_worker_of(base, tools, jobs),
        operators=OperatorServices(
            gate=gate,
            jobs=jobs.service,
            agents=agents,
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
        agents=agents,
        network=_network_of(base, tools),
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
        mcp=mcp_of(base, tools, jobs, executions),
        ids=base.ids,
    )


def _worker_of(base: Base, tools: Tools, jobs: Jobs) -> WorkerServices:
    reports = WorkerReports(
        jobs.parts,
        membership=tools.membership,
        secrets=base.secrets,
        sockets=jobs.sockets,
        registry=tools.registry,
        audit=tools.audit,
        wake=jobs.wake,
    )
    wait_s = base.settings.tools_wait_s
    return WorkerServices(
        jobs.tokens,
        reports,
        Catalogues(tools.registry),
        FirstCatalogue(tools.mcp_file, tools.registry, jobs.parts.timeline, wait_s=wait_s),
        tools.outputs,
    )


def _network_of(base: Base, tools: Tools) -> NetworkServices:
    store = tools.network_store
    return NetworkServices(
        NetworkOverview(store, base.clock),
        NetworkSignatures(store, tools.message_keys),
        NetworkPeople(store, tools.network, base.clock, base.ids, tools.arrivals.announce),
    )


async def _missing(stores: Stores, supervisor: Supervisor) -> str:
    """What keeps the service from working; "" when nothing does."""
    if not await stores.database.check():
        return "the database schema is not current"
    return supervisor.engine_error
