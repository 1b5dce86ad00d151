"""The example server over the ways that HTTP has had in MCP: `python notes_over_http.py WAY PORT`."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp-notes" / "server.py"
WAYS = ("sessions", "stateless", "json", "sse", "2026")


def example() -> ModuleType:
    """The example's module."""
    spec = importlib.util.spec_from_file_location("mcp_notes", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def application(way: str) -> Any:
    """The ASGI application for one way."""
    module = example()
    server = module.build_server(module.Notes(None))
    if way == "sse":
        return sse_application(server)
    app = server.streamable_http_app(stateless_http=way == "stateless", json_response=way == "json")
    return without_handshake(app) if way == "2026" else app


def sse_application(server: Any) -> Any:
    """Revision 2024-11-05: a stream, and a POST for each message; nothing else is there."""
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:  # pyright: ignore[reportPrivateUsage] - as the SDK's example
            await server.run(*streams, server.create_initialization_options())
        return Response()

    return Starlette(
        routes=[
            Route("/mcp", stream, methods=["GET"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )


def without_handshake(app: Any) -> Any:
    """Revision 2026-07-28 alone: `initialize` is not known."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        message = json.loads(body)
        if message.get("method") == "initialize":
            error = {"code": -32601, "message": "Method not found"}
            answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": answer})
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Any:
            return given.pop() if given else await receive()

        await app(scope, replay, send)

    return wrapped


def main(way: str, port: str) -> None:
    import uvicorn

    uvicorn.run(application(way), host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
