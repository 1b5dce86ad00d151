"""The operator API for MCP servers."""

from __future__ import annotations

from fastapi import APIRouter

from orchestrator.errors import BadRequest, NotFound
from orchestrator.http.mcp_messages import (
    McpFileView,
    McpImportRequest,
    McpImportView,
    McpLoginAnswer,
    McpLoginDone,
    McpLoginPort,
    McpLoginRequest,
    McpLoginView,
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

    _login_routes(router, mcp)


def _login_routes(router: APIRouter, mcp: McpControl) -> None:
    @router.get("/mcp/{name}/login", summary="Where a browser must be sent back to")
    async def get_login(name: str) -> McpLoginPort:
        return McpLoginPort(port=await mcp.login_port(name))

    @router.post("/mcp/{name}/login", status_code=201, summary="Begin to log in at an MCP server")
    async def begin_login(name: str, asked: McpLoginRequest) -> McpLoginView:
        begun = await mcp.begin_login(name, asked.callback)
        return McpLoginView(id=begun.id, url=begun.url)

    @router.post("/mcp-logins/{login}", summary="Finish a login")
    async def finish_login(login: str, asked: McpLoginAnswer) -> McpLoginDone:
        return McpLoginDone(name=await mcp.finish_login(login, asked.returned))

    @router.delete("/mcp/{name}/login", summary="Forget what a login gave")
    async def logout(name: str) -> McpLoginDone:
        if not await mcp.logout(name):
            raise NotFound(f"nobody is logged in at the MCP server {name[:80]!r}")
        return McpLoginDone(name=name)
