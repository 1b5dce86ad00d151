"""The operator API for MCP servers."""

from __future__ import annotations

from fastapi import APIRouter

from orchestrator.errors import BadRequest
from orchestrator.http.mcp_messages import (
    McpFileView,
    McpImportRequest,
    McpImportView,
    McpRequest,
    McpTrialView,
    McpView,
)
from orchestrator.ports.tool_sources import McpControl
from orchestrator.services.mcp_trials import try_server


def add_mcp_routes(router: APIRouter, mcp: McpControl) -> None:
    """Every route for MCP servers."""

    @router.get("/mcp", summary="The MCP servers and how they are")
    async def get_servers() -> list[McpView]:
        return [McpView.of(view) for view in mcp.servers()]

    @router.get("/mcp-file", summary="What keeps the file of MCP servers from being used")
    async def get_file() -> McpFileView:
        return McpFileView(problem=mcp.problem)

    @router.put("/mcp/{name}", status_code=201, summary="Take an MCP server in")
    async def put_server(name: str, asked: McpRequest) -> None:
        if asked.config is None:
            raise BadRequest("config is missing; give the server's entry as in an mcpServers file")
        await mcp.add(name, asked.config)

    @router.delete("/mcp/{name}", status_code=204, summary="Forget an MCP server")
    async def delete(name: str) -> None:
        await mcp.remove(name)

    @router.post("/mcp/{name}/test", summary="Connect to an MCP server once, and judge its tools")
    async def test(name: str, asked: McpRequest) -> McpTrialView:
        return McpTrialView.of_trial(await try_server(mcp, name, asked.config))

    @router.post("/mcp-file/import", summary="Take in another client's configuration")
    async def import_file(asked: McpImportRequest) -> McpImportView:
        done = await mcp.import_file(asked.text, source=asked.source, replace=asked.replace)
        return McpImportView.of(done)
