"""An MCP server that asks for a login, and the authorisation server that it names, on two ports of this machine.

Both are the SDK's own server parts; who may have which token is kept here, where a test can change it.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import mcp_types as types
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.lowlevel.server import Server
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette


class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Who may have which token; everybody who asks agrees.

    Attributes:
        lifetime_s: of access tokens that are given from now on.
        refuses: a person who does not agree.
        refreshes: how many times a token was refreshed.
        seen: every refresh token that was ever presented.
    """

    def __init__(self) -> None:
        self.lifetime_s = 3600
        self.refuses = False
        self.refuses_refresh = False
        self.refreshes = 0
        self.seen: list[str] = []
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    def revoke_access(self) -> None:
        """Every access token is void from now on; refresh tokens stay."""
        self.access.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back = str(params.redirect_uri)
        if self.refuses:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(16),
            scopes=params.scopes or [],
            expires_at=_now() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        self.seen.append(refresh_token)
        return None if self.refuses_refresh else self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.refreshes += 1
        return self._tokens(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        ended = found is not None and found.expires_at is not None and found.expires_at < _now()
        return None if ended else found

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _tokens(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        ends = int(_now()) + self.lifetime_s
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=ends, resource=resource
        )
        self.refresh[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime_s)


class Guarded:
    """The two servers.

    Attributes:
        url: of the MCP server, whose one tool `whoami` answers "you are known".
    """

    def __init__(self, authority: Authority, url: str) -> None:
        self.authority = authority
        self.url = url


@asynccontextmanager
async def guarded(*, registers: bool = True) -> AsyncGenerator[Guarded]:
    """Serve both; with `registers` clients register themselves."""
    authority = Authority()
    async with AsyncExitStack() as stack:
        issuer = await stack.enter_async_context(
            _serving(lambda url: _authorisation(authority, url, registers))
        )
        resource = await stack.enter_async_context(_serving(lambda url: _resource(authority, issuer, url)))
        yield Guarded(authority, f"{resource}/mcp")


def _now() -> float:
    return time.time()  # noqa: TID251 - the SDK's parts read this clock too


async def agree(authorization_url: str) -> dict[str, str]:
    """What a person does in a browser: the query that it is sent back with."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(authorization_url)
    assert answer.status_code == 302, answer.text
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


def _authorisation(authority: Authority, url: str, registers: bool) -> Starlette:
    options = ClientRegistrationOptions(enabled=registers)
    return Starlette(
        routes=create_auth_routes(authority, AnyHttpUrl(url), client_registration_options=options)
    )


def _resource(authority: Authority, issuer: str, url: str) -> Starlette:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="whoami", input_schema={"type": "object"})])

    async def call_tool(_context: Any, _params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="you are known")])

    server = Server[Any]("guarded", on_list_tools=list_tools, on_call_tool=call_tool)
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"{url}/mcp"),
        validate_token_resource=True,
    )
    return server.streamable_http_app(auth=settings, token_verifier=ProviderTokenVerifier(authority))


@asynccontextmanager
async def _serving(make: Callable[[str], Starlette]) -> AsyncGenerator[str]:
    """Serve an application in this loop; gives its origin."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(make(url), log_level="error", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            assert not task.done(), task
            await asyncio.sleep(0.01)
        yield url
    finally:
        server.should_exit = True
        await task
        listener.close()
