"""The operator API for tools and MCP servers."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query

from orchestrator.domain.shaping.family import USUAL
from orchestrator.errors import BadRequest
from orchestrator.http.auth import OperatorGate
from orchestrator.http.contract_messages import ToolStatsView
from orchestrator.http.gated import gated
from orchestrator.http.operator_mcp import add_mcp_routes
from orchestrator.http.tool_messages import (
    AgreeRequest,
    CheckRequest,
    ProviderView,
    SidecarRequest,
    ToolCallRequest,
    ToolDetail,
    ToolSummary,
    WasmRequest,
)
from orchestrator.ports.tool_sources import McpControl
from orchestrator.services.statistics import Statistics
from orchestrator.services.tool_desk import ToolDesk, ToolView


@dataclass(frozen=True, slots=True)
class ToolServices:
    """What the routes call."""

    gate: OperatorGate
    desk: ToolDesk
    mcp: McpControl
    statistics: Statistics


def tools_router(services: ToolServices) -> APIRouter:
    """Every tool route for operators."""
    router = APIRouter(prefix="/api/v1", tags=["tools"], route_class=gated(services.gate))
    _stats_routes(router, services.statistics)
    _tool_routes(router, services.desk)
    _wasm_routes(router, services.desk)
    add_mcp_routes(router, services.mcp)
    return router


def _stats_routes(router: APIRouter, statistics: Statistics) -> None:
    @router.get("/tool-stats", summary="How the tools fare with models")
    async def get_all_stats(name: Annotated[list[str] | None, Query()] = None) -> list[ToolStatsView]:
        return [ToolStatsView.of(one) for one in await statistics.of(name or ())]

    @router.get("/tools/{name}/stats", summary="How one tool fares with models")
    async def get_stats(name: str) -> ToolStatsView:
        (found,) = await statistics.of([name])
        return ToolStatsView.of(found)


def _tool_routes(router: APIRouter, desk: ToolDesk) -> None:
    @router.get("/tools", summary="The registry, with each tool's verdict for hosted jobs")
    async def get_tools() -> list[ToolSummary]:
        return [ToolSummary.of(view) for view in desk.views()]

    @router.get("/tools/{name}", summary="One tool as models see it")
    async def get_tool(name: str) -> ToolDetail:
        return await _detail(desk, desk.view(name))

    @router.post("/tools/check", summary="How each provider family sees the tools")
    async def check(asked: CheckRequest) -> dict[str, list[ProviderView]]:
        found = desk.check(asked.names, asked.providers or USUAL)
        return {name: [ProviderView.of(one) for one in verdicts] for name, verdicts in found.items()}

    @router.post("/tools/{name}/call", summary="A call by hand")
    async def call(name: str, asked: ToolCallRequest) -> dict[str, Any]:
        output = await desk.call(name, asked.params)
        return {"output": output.as_json()}

    @router.post("/tools/{name}/enable", summary="Let callers have the tool again")
    async def enable(name: str) -> ToolSummary:
        return ToolSummary.of(await desk.set_enabled(name, enabled=True))

    @router.post("/tools/{name}/disable", summary="Take the tool away from every caller, until it is enabled")
    async def disable(name: str) -> ToolSummary:
        return ToolSummary.of(await desk.set_enabled(name, enabled=False))

    @router.delete("/tools/{name}", status_code=204, summary="Remove a WASM tool")
    async def delete(name: str) -> None:
        await desk.remove(name)


def _wasm_routes(router: APIRouter, desk: ToolDesk) -> None:
    @router.put("/tools/wasm/{stem}", status_code=201, summary="Take a WASM tool in")
    async def put_wasm(stem: str, asked: WasmRequest) -> ToolDetail:
        sidecar = None if asked.sidecar is None else _bytes(asked.sidecar)
        view = await desk.add_wasm(stem, _bytes(asked.wasm), sidecar, agreed=asked.agreed)
        return await _detail(desk, view)

    @router.post("/tools/wasm/asks", summary="What a WASM tool's sidecar asks for")
    async def post_asks(asked: SidecarRequest) -> list[str]:
        return list(desk.asks(_bytes(asked.sidecar)))

    @router.post("/tools/{name}/agree", summary="Agree to what a changed capabilities file asks for")
    async def post_agree(name: str, asked: AgreeRequest) -> ToolDetail:
        return await _detail(desk, await desk.agree(name, asked.asks))


async def _detail(desk: ToolDesk, view: ToolView) -> ToolDetail:
    name = view.entry.name
    return ToolDetail.of(view).granting(await desk.granted(name), await desk.wants(name))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest("the files travel as base64") from None
