"""MCP servers that are remembered: the running ones and their configuration file, kept in step."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tool_registry.mcp.config import McpConfigError, ServerConfig, load_config, parse_server
from tool_registry.mcp.foreign import read_foreign
from tool_registry.mcp.login import BegunLogin, Logins
from tool_registry.mcp.placeholders import SecretResolver
from tool_registry.mcp.servers import DuplicateServer, McpServers, ServerTrial, UnknownServer
from tool_registry.mcp.status import ServerStatus

logger = logging.getLogger("tool_registry.mcp")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did; every name is a server's.

    Attributes:
        unchanged: configured like that already.
        missing_secrets: what the servers refer to and the secret store does not hold.
        notes: what of the file was passed over.
    """

    added: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    missing_secrets: tuple[str, ...]
    notes: tuple[str, ...]


class McpServerFile:
    """Adds, removes and tests servers; the file is the common `mcpServers` JSON.

    Args:
        servers: made from the same file.
        path: rewritten whole at every change; what others wrote into it stays.
        logins: logs in at them.
        resolve_secret: tells whether a secret that an imported server needs is there.
    """

    def __init__(
        self, servers: McpServers, path: Path, *, logins: Logins, resolve_secret: SecretResolver
    ) -> None:
        self._servers = servers
        self._logins = logins
        self._path = path
        self._resolve_secret = resolve_secret
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
            await asyncio.to_thread(self._rewrite, {name: dict(config)})
            self._servers.add(name, parsed)

    async def import_file(self, text: str, *, source: str, replace: bool) -> Imported:
        """Take in all servers of a client's configuration, or none.

        Args:
            text: the file.
            source: its name, for messages.
            replace: whether servers that are configured differently are replaced.

        Raises:
            McpConfigError: it can't be used.
            DuplicateServer: a server of the same name is configured differently.
        """
        foreign = read_foreign(text, source=source)
        async with self._changing:
            present = self._servers.configs()
            same = [name for name, config in foreign.configs.items() if present.get(name) == config]
            other = [name for name in foreign.configs if name in present and name not in same]
            if other and not replace:
                raise DuplicateServer(
                    f"nothing was taken in: {', '.join(map(repr, other))} is configured differently already;"
                    " use --replace, or remove it first"
                )
            await asyncio.to_thread(self._rewrite, foreign.entries)
            for name in other:
                await self._servers.replace(name, foreign.configs[name])
            added = [name for name in foreign.configs if name not in present]
            for name in added:
                self._servers.add(name, foreign.configs[name])
        missing = [name for name in foreign.secrets if await self._resolve_secret(name) is None]
        return Imported(tuple(added), tuple(other), tuple(same), tuple(missing), foreign.notes)

    async def remove(self, name: str) -> None:
        """End a server and forget it.

        Raises:
            UnknownServer: there is none of this name.
        """
        async with self._changing:
            await self._servers.remove(name)
            await asyncio.to_thread(self._rewrite, {name: None})

    async def test(self, name: str, config: Mapping[str, Any] | None) -> ServerTrial:
        """Connect once, list its tools and end it.

        Raises:
            McpConfigError: the entry can't be used.
            UnknownServer: no entry is given and none of this name is configured.
        """
        if config is not None:
            return await self._servers.test(name, parse_server(config, name=name))
        return await self._servers.test(name, await self._configured(name))

    async def begin_login(self, name: str, callback: str) -> BegunLogin:
        """Begin to log in at a configured server.

        Args:
            name: of the server.
            callback: where the browser is sent back to.

        Raises:
            UnknownServer: there is none of this name.
            LoginFailed: it can't be logged in at.
        """
        return await self._logins.begin(name, await self._configured(name), callback)

    async def login_port(self, name: str) -> int:
        """The local port that the browser must be sent back to; 0 for any.

        Raises:
            UnknownServer: there is none of this name.
        """
        oauth = (await self._configured(name)).oauth
        return (oauth.callback_port or 0) if oauth is not None else 0

    async def finish_login(self, id: str, returned: Mapping[str, str]) -> str:
        """Finish it with what the browser came back with, and connect anew; answers the server's name.

        Raises:
            NoSuchLogin: it has ended.
            LoginFailed: it was refused.
        """
        name = await self._logins.finish(id, returned)
        async with self._changing:
            if self._servers.connects(name):
                await self._servers.reconnect(name)
        return name

    async def logout(self, name: str) -> bool:
        """Remove what a login gave, and connect anew without; False when there was nothing."""
        done = await self._logins.forget(name)
        async with self._changing:
            if done and self._servers.connects(name):
                await self._servers.reconnect(name)
        return done

    async def _configured(self, name: str) -> ServerConfig:
        configured = (await asyncio.to_thread(load_config, self._path)).servers.get(name)
        if configured is None:
            raise UnknownServer(f"there is no MCP server {name!r}; see portside mcp list")
        return configured

    def _rewrite(self, entries: Mapping[str, dict[str, Any] | None]) -> None:
        whole = self._read()
        servers = cast("dict[str, Any]", whole.setdefault("mcpServers", {}))
        for name, entry in entries.items():
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
