"""MCP servers that are remembered: the running ones and their configuration file, kept in step."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tool_registry.mcp.config import McpConfigError, load_config, parse_server
from tool_registry.mcp.servers import DuplicateServer, McpServers, UnknownServer
from tool_registry.mcp.status import ServerStatus

logger = logging.getLogger("tool_registry.mcp")


class McpServerFile:
    """Adds, removes and tests servers; the file is the common `mcpServers` JSON.

    Args:
        servers: made from the same file.
        path: rewritten whole at every change; what others wrote into it stays.
    """

    def __init__(self, servers: McpServers, path: Path) -> None:
        self._servers = servers
        self._path = path
        self._changing = asyncio.Lock()
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why the file as it is now is not in use; "" when it is."""
        return self._problem

    async def reload(self) -> None:
        """Bring the servers up to the file: start what is new, end what is gone, restart what differs.

        A file that can't be used changes nothing; `problem` and the log say why.
        """
        async with self._changing:
            try:
                wanted = (await asyncio.to_thread(load_config, self._path)).servers
            except McpConfigError as error:
                if error.message != self._problem:
                    logger.warning("the MCP servers stay as they are: %s", error.message)
                self._problem = error.message
                return
            self._problem = ""
            present = self._servers.configs()
            for name in present.keys() - wanted.keys():
                await self._servers.remove(name)
            for name, config in wanted.items():
                if name not in present:
                    self._servers.add(name, config)
                elif config != present[name]:
                    await self._servers.replace(name, config)

    async def settled(self, within_s: float) -> Sequence[str]:
        """Wait for every server's first attempt, bounded; answers who is still connecting."""
        return await self._servers.settled(within_s)

    def servers(self) -> Sequence[ServerStatus]:
        """All of them, sorted by name."""
        return self._servers.status()

    async def add(self, name: str, config: Mapping[str, Any]) -> None:
        """Take a server in, remember it, and begin to connect.

        Raises:
            McpConfigError: the entry can't be used.
            DuplicateServer: there is one of this name.
        """
        parsed = parse_server(config, name=name)
        async with self._changing:
            if name in self._servers.configs():
                raise DuplicateServer(f"there is an MCP server {name!r} already; remove it first")
            await asyncio.to_thread(self._rewrite, name, dict(config))
            self._servers.add(name, parsed)

    async def remove(self, name: str) -> None:
        """End a server and forget it.

        Raises:
            UnknownServer: there is none of this name.
        """
        async with self._changing:
            await self._servers.remove(name)
            await asyncio.to_thread(self._rewrite, name, None)

    async def test(self, name: str, config: Mapping[str, Any] | None) -> ServerStatus:
        """Connect once, list its tools and end it.

        Raises:
            McpConfigError: the entry can't be used.
            UnknownServer: no entry is given and none of this name is configured.
        """
        if config is not None:
            return await self._servers.test(name, parse_server(config, name=name))
        configured = (await asyncio.to_thread(load_config, self._path)).servers.get(name)
        if configured is None:
            raise UnknownServer(f"there is no MCP server {name!r}; see portside mcp list")
        return await self._servers.test(name, configured)

    def _rewrite(self, name: str, entry: dict[str, Any] | None) -> None:
        whole = self._read()
        servers = cast("dict[str, Any]", whole.setdefault("mcpServers", {}))
        if entry is None:
            servers.pop(name, None)
        else:
            servers[name] = entry
        draft = self._path.with_name(self._path.name + ".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(draft, self._path)  # noqa: PTH105 - both are paths already

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise McpConfigError(f"{self._path} is not usable JSON: {error}") from None
        return cast("dict[str, Any]", value)
