"""Logging in at an MCP server: begun here, agreed to in a person's browser, finished here.

The SDK's provider runs the flow: discovery, registration, PKCE with `state`, and the exchange. Between its
two halves it waits in a task of its own for what the browser was sent back with.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import AnyUrl, ValidationError

from tool_registry.errors import PortsideError
from tool_registry.mcp.config import ServerConfig
from tool_registry.mcp.grants import Grant, GrantKeeper, Grants, client_metadata
from tool_registry.mcp.placeholders import SecretResolver, resolve_all
from tool_registry.mcp.session import CLIENT_INFO
from tool_registry.mcp.transport import ServerUnreachable

BEGIN_LIMIT_S = 30.0
PERSON_LIMIT_S = 600.0
FINISH_LIMIT_S = 30.0
_REQUEST_LIMIT_S = 15.0


class LoginFailed(PortsideError):
    """A login did not give tokens; the message says why."""

    code = "mcp_login_failed"


class NoSuchLogin(PortsideError):
    """A login was not begun, has ended, or took too long."""

    code = "mcp_login_not_found"


@dataclass(frozen=True, slots=True)
class BegunLogin:
    """A login that waits for a person.

    Attributes:
        url: where the person agrees; the browser is sent back to the redirect URI afterwards.
    """

    id: str
    url: str


@dataclass(slots=True)
class _Pending:
    server: str
    asked: asyncio.Future[str] = field(default_factory=asyncio.Future[str])
    answered: asyncio.Future[AuthorizationCodeResult] = field(
        default_factory=asyncio.Future[AuthorizationCodeResult]
    )
    task: asyncio.Task[None] | None = None


class Logins:
    """All logins that are under way.

    Args:
        grants: where what they give is kept.
        resolve_secret: answers `${secret:NAME}` of a configured client secret.
    """

    def __init__(self, grants: Grants, resolve_secret: SecretResolver) -> None:
        self._grants = grants
        self._resolve_secret = resolve_secret
        self._pending: dict[str, _Pending] = {}

    async def begin(self, server: str, config: ServerConfig, redirect_uri: str) -> BegunLogin:
        """Discover, register where needed, and answer the address at which a person agrees.

        Raises:
            LoginFailed: it is no server to log in at, or its authorisation server can't be used.
        """
        if config.url is None:
            raise LoginFailed(
                f"the MCP server {server!r} is a command; only a server behind a URL has a login"
            )
        login = _Pending(server)
        client = await self._client(config, redirect_uri)
        login.task = asyncio.create_task(self._run(login, config.url, redirect_uri, client))
        try:
            async with asyncio.timeout(BEGIN_LIMIT_S):
                await asyncio.wait({login.task, login.asked}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            await _end(login)
            raise LoginFailed(f"its authorisation server did not answer within {BEGIN_LIMIT_S:g} s") from None
        if not login.asked.done():
            await login.task  # raises why
            raise LoginFailed(f"the MCP server {server!r} asks for no login")
        id = secrets.token_urlsafe(16)
        self._pending[id] = login
        return BegunLogin(id, login.asked.result())

    async def finish(self, id: str, returned: Mapping[str, str]) -> str:
        """Exchange what the browser came back with for tokens, and keep them.

        Args:
            id: of the login.
            returned: the query of the redirect: `code` and `state`, or `error`.

        Returns:
            The server's name.

        Raises:
            NoSuchLogin: it has ended.
            LoginFailed: the person or the authorisation server refused, or `state` is another's.
        """
        login = self._pending.pop(id, None)
        if login is None or login.task is None or login.task.done():
            raise NoSuchLogin("this login has ended; begin again")
        if "error" in returned:
            await _end(login)
            said = ": ".join(returned[key][:300] for key in ("error", "error_description") if key in returned)
            raise LoginFailed(f"the authorisation server refused: {said}")
        login.answered.set_result(
            AuthorizationCodeResult(
                code=returned.get("code", ""), state=returned.get("state"), iss=returned.get("iss")
            )
        )
        try:
            async with asyncio.timeout(FINISH_LIMIT_S):
                await login.task
        except TimeoutError:
            raise LoginFailed(
                f"the authorisation server did not answer within {FINISH_LIMIT_S:g} s"
            ) from None
        return login.server

    async def forget(self, server: str) -> bool:
        """Remove what a login gave; False when there is nothing."""
        return await self._grants.forget(server)

    async def close(self) -> None:
        """End what is under way."""
        for login in self._pending.values():
            await _end(login)
        self._pending.clear()

    async def _run(
        self, login: _Pending, url: str, redirect_uri: str, client: OAuthClientInformationFull | None
    ) -> None:
        keeper = GrantKeeper(self._grants, login.server, Grant(url=url, client=client), _unheard)

        async def show(authorization_url: str) -> None:
            login.asked.set_result(authorization_url)

        async def wait() -> AuthorizationCodeResult:
            async with asyncio.timeout(PERSON_LIMIT_S):
                return await login.answered

        provider = OAuthClientProvider(url, client_metadata(redirect_uri), keeper, show, wait)
        keeper.provider = provider
        try:
            async with (
                httpx2.AsyncClient(auth=provider, timeout=_REQUEST_LIMIT_S) as http,
                http.stream("POST", url, json=_INITIALIZE, headers=_HEADERS) as response,
            ):
                status = response.status_code
        except OAuthFlowError as error:
            raise LoginFailed(f"the login failed: {str(error)[:500]}") from None
        except (ValidationError, ValueError) as error:
            raise LoginFailed(f"its authorisation server breaks the protocol: {str(error)[:300]}") from None
        except httpx2.TransportError as error:
            raise LoginFailed(f"it can't be reached: {str(error)[:200] or type(error).__name__}") from None
        except TimeoutError:
            raise LoginFailed(f"nobody agreed within {PERSON_LIMIT_S / 60:g} minutes; begin again") from None
        if login.asked.done() and status in {401, 403}:
            await self._grants.forget(login.server)
            raise LoginFailed(f"the server refuses the token that its login gave: HTTP {status}")

    async def _client(self, config: ServerConfig, redirect_uri: str) -> OAuthClientInformationFull | None:
        """The client that the configuration names; None where one is to be registered."""
        if config.oauth is None:
            return None
        given = {"client_secret": config.oauth.client_secret} if config.oauth.client_secret else {}
        try:
            secret = (await resolve_all(given, self._resolve_secret)).values.get("client_secret")
        except ServerUnreachable as error:
            raise LoginFailed(str(error)) from None
        return OAuthClientInformationFull(
            client_id=config.oauth.client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(redirect_uri)],
            token_endpoint_auth_method="client_secret_post" if secret else "none",
        )


async def _end(login: _Pending) -> None:
    if login.task is not None:
        login.task.cancel()
        await asyncio.gather(login.task, return_exceptions=True)


def _unheard(_secrets: Iterable[str]) -> None:
    """Nothing is logged in a login."""


_HEADERS = {"Accept": "application/json, text/event-stream"}
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": CLIENT_INFO.model_dump(by_alias=True, mode="json", exclude_none=True),
    },
}
