"""Which transport a server's configuration asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import httpx2

from tool_registry.mcp.config import ServerConfig
from tool_registry.mcp.http import HttpTransport
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.sse import SseTransport
from tool_registry.mcp.stdio import StdioTransport
from tool_registry.mcp.transport import Transport

ANSWER_SLACK_S = 30.0

MakeTransport = Callable[[ServerConfig, Mapping[str, str], ServerLog, httpx2.Auth | None], Transport]
"""Makes a transport from a server's configuration and its resolved env or headers, and what a login gave."""


def default_transport(
    config: ServerConfig, values: Mapping[str, str], log: ServerLog, auth: httpx2.Auth | None
) -> Transport:
    """Stdio for a `command`; for a `url` streamable HTTP, and SSE where that is refused."""
    if config.url is not None:
        older = SseTransport(config.url, values, auth=auth) if config.type in {None, "sse"} else None
        if older is not None and config.type == "sse":
            return older
        timeout_s = config.timeout_s + ANSWER_SLACK_S
        return HttpTransport(config.url, values, answer_timeout_s=timeout_s, auth=auth, older=older)
    assert config.command is not None
    return StdioTransport(
        config.command, config.args, env=values, cwd=config.cwd, log=log, inherited=os.environ
    )
