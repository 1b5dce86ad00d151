"""What a login at an MCP server gave, kept sealed, and used for every request.

The SDK's provider does the protocol. Around it this module adds what a service needs that runs without a
person and restarts: expiry and endpoints are remembered with the tokens, a refused token is refreshed once,
requests do not wait for one another, and nobody is ever asked to log in from here (`login.py` does that).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Protocol

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

CLIENT_NAME = "Portside"


class SecretVault(Protocol):
    """Named secret values, encrypted at rest."""

    async def get(self, name: str) -> str | None:
        """The value, or None."""
        ...

    async def set(self, name: str, value: str) -> None:
        """Store a value; an older one of this name is gone."""
        ...

    async def delete(self, name: str) -> bool:
        """Remove it; False when it was not there."""
        ...


class Grant(BaseModel):
    """Everything a login gave, as it is sealed.

    Attributes:
        url: of the server it is for; it is used for no other.
        expires_at: seconds since the epoch at which the access token ends; None when nobody said.
    """

    url: str
    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    authorization_server: OAuthMetadata | None = None
    authorization_server_url: str | None = None
    resource: ProtectedResourceMetadata | None = None

    def secrets(self) -> Iterable[str]:
        """What must never be shown."""
        if self.tokens is not None:
            yield self.tokens.access_token
            yield self.tokens.refresh_token or ""
        if self.client is not None:
            yield self.client.client_secret or ""


class Grants:
    """The grants in a vault, by server name. `${secret:NAME}` can't name one."""

    def __init__(self, vault: SecretVault) -> None:
        self._vault = vault

    async def load(self, server: str, url: str) -> Grant | None:
        """The grant of a server, if there is one for exactly this URL."""
        text = await self._vault.get(_name(server))
        if text is None:
            return None
        try:
            grant = Grant.model_validate_json(text)
        except ValidationError:
            return None  # of a version whose form is unknown: as if nobody had logged in
        return grant if grant.url == url and grant.tokens is not None else None

    async def save(self, server: str, grant: Grant) -> None:
        """Keep a grant; an older one is gone."""
        await self._vault.set(_name(server), grant.model_dump_json(exclude_none=True))

    async def forget(self, server: str) -> bool:
        """Remove a grant; False when there was none."""
        return await self._vault.delete(_name(server))


def _name(server: str) -> str:
    return f"mcp-oauth:{server}"


class GrantKeeper:
    """The SDK's `TokenStorage` over one server's grant; the provider's findings are kept with the tokens."""

    def __init__(
        self, grants: Grants, server: str, grant: Grant, on_secrets: Callable[[Iterable[str]], None]
    ) -> None:
        self._grants = grants
        self._server = server
        self._on_secrets = on_secrets
        self.grant = grant
        self.provider: OAuthClientProvider | None = None

    async def reload(self) -> None:
        """Take over what somebody else has stored meanwhile."""
        found = await self._grants.load(self._server, self.grant.url)
        if found is not None:
            self.grant = found
            self._on_secrets(found.secrets())

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self.grant.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens, and how to refresh them."""
        assert self.provider is not None
        context = self.provider.context
        self.grant = Grant(
            url=self.grant.url,
            client=context.client_info,
            tokens=tokens,
            expires_at=context.token_expiry_time,
            authorization_server=context.oauth_metadata,
            authorization_server_url=context.auth_server_url,
            resource=context.protected_resource_metadata,
        )
        self._on_secrets(self.grant.secrets())
        await self._grants.save(self._server, self.grant)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client as it was registered."""
        return self.grant.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Remember the client; it is kept with the tokens that follow."""
        self.grant = self.grant.model_copy(update={"client": client_info})


class GrantAuth(OAuthClientProvider):
    """Adds the stored token to each request, and refreshes it: before it ends, and once after a 401.

    Where that fails the request goes out as it is, and the server's 401 is the answer.
    """

    def __init__(self, keeper: GrantKeeper) -> None:
        super().__init__(keeper.grant.url, client_metadata(None), keeper)
        self._keeper = keeper
        keeper.provider = self

    async def _initialize(self) -> None:
        await self._keeper.reload()
        await super()._initialize()
        grant, context = self._keeper.grant, self.context
        context.token_expiry_time = grant.expires_at
        context.oauth_metadata = grant.authorization_server
        context.auth_server_url = grant.authorization_server_url
        context.protected_resource_metadata = grant.resource

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with self.context.lock:
            if not self._initialized:
                await self._initialize()
            if not self.context.is_token_valid():
                await self._initialize()  # somebody else may have refreshed it
                if not self.context.is_token_valid() and self.context.can_refresh_token():
                    await self._handle_refresh_response((yield await self._refresh_token()))
            used = self.context.current_tokens
            self._add_auth_header(request)
        response = yield request
        if response.status_code != 401 or used is None:
            return
        async with self.context.lock:
            if self.context.current_tokens is used:  # else another request has refreshed it
                await self._initialize()
                if self.context.current_tokens == used and self.context.can_refresh_token():
                    await self._handle_refresh_response((yield await self._refresh_token()))
        if self.context.current_tokens == used:
            return
        # Without a new token too: the last answer of a flow is the request's, and that is the server's 401.
        del request.headers["Authorization"]
        self._add_auth_header(request)
        yield request


def client_metadata(redirect_uri: str | None) -> OAuthClientMetadata:
    """How Portside introduces itself to an authorisation server: a native client without a secret."""
    return OAuthClientMetadata(
        client_name=CLIENT_NAME,
        redirect_uris=[AnyUrl(redirect_uri or "http://127.0.0.1/callback")],
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
    )
