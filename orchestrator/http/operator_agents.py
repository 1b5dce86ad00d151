"""The operator API for agents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ValidationError

from orchestrator.errors import BadRequest
from orchestrator.http.agent_messages import AgentFileView, AgentRequest, AgentView
from orchestrator.http.auth import OperatorGate
from orchestrator.http.gated import gated
from orchestrator.services.agent_desk import AgentDesk
from orchestrator.services.agent_profiles import AgentProfile

_AGENTS = "/networks/{network}/agents"


def agents_router(gate: OperatorGate, agents: AgentDesk) -> APIRouter:
    """Every agent route for operators."""
    router = APIRouter(prefix="/api/v1", tags=["agents"], route_class=gated(gate))

    @router.get("/networks", summary="The networks' names")
    async def get_networks() -> list[str]:
        return [str(name) for name in await agents.networks()]

    @router.get("/agents-file", summary="How agents.yaml stands")
    async def get_file() -> AgentFileView:
        return AgentFileView.of(agents.file)

    @router.get(_AGENTS, summary="A network's agents, by name")
    async def get_agents(network: str) -> list[AgentView]:
        return [AgentView.of_record(network, one) for one in await agents.list(network)]

    @router.post(_AGENTS, status_code=201, summary="Define an agent")
    async def post_agent(network: str, asked: AgentRequest) -> AgentView:
        return AgentView.of_record(network, await agents.add(network, asked.name, asked.profile()))

    @router.get(_AGENTS + "/{name}", summary="One agent")
    async def get_agent(network: str, name: str) -> AgentView:
        return AgentView.of_record(network, await agents.get(network, name))

    @router.patch(
        _AGENTS + "/{name}", summary="Change fields of an agent's profile; a list is replaced whole"
    )
    async def patch_agent(network: str, name: str, asked: dict[str, Any]) -> AgentView:
        there = AgentProfile.of((await agents.get(network, name)).definition)
        return AgentView.of_record(network, await agents.update(network, name, _changed(there, asked)))

    @router.delete(_AGENTS + "/{name}", status_code=204, summary="Forget an agent")
    async def delete_agent(network: str, name: str, *, force: Annotated[bool, Query()] = False) -> None:
        await agents.remove(network, name, force=force)

    return router


def _changed(there: AgentProfile, fields: dict[str, Any]) -> AgentProfile:
    launch = fields.get("launch")
    if isinstance(launch, dict):
        fields = {**fields, "launch": there.launch.model_dump() | launch}
    try:
        return AgentProfile.model_validate(there.model_dump() | fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the profile"
        raise BadRequest(f"{where[:200]}: {first['msg'].removeprefix('Value error, ')[:500]}") from None
