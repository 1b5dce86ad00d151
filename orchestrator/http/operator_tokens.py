"""The operator API for tokens of agents and representatives outside of jobs."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from orchestrator.http.auth import OperatorGate
from orchestrator.http.gated import gated
from orchestrator.http.mcp_route import McpServices
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.ports.member_tokens import Holder, MemberToken
from orchestrator.services.member_tokens import DEFAULT_DAYS, MAX_DAYS


class TokenRequest(OperatorRequest):
    """A token to give out."""

    holder: Holder
    name: str = Field(min_length=1, max_length=64)
    network: str = Field(default="", max_length=64)
    days: float = Field(default=DEFAULT_DAYS, gt=0, le=MAX_DAYS)


class TokenView(BaseModel):
    """What is known of a token that was given out."""

    id: str
    holder: Holder
    name: str
    network: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None

    @classmethod
    def of(cls, token: MemberToken) -> TokenView:
        """The view of a token."""
        return cls(
            id=token.id,
            holder=token.holder,
            name=token.name,
            network=token.network,
            created_at=token.created_at,
            expires_at=token.expires_at,
            revoked_at=token.revoked_at,
        )


class GivenTokenView(BaseModel):
    """A fresh token, with its text."""

    token: str
    about: TokenView


def tokens_router(gate: OperatorGate, services: McpServices, network: str) -> APIRouter:
    """Every token route for operators; `network` is for agents whose network is not named."""
    tokens = services.tokens
    router = APIRouter(prefix="/api/v1", tags=["tokens"], route_class=gated(gate))

    @router.post("/tokens", status_code=201, summary="Give out a token; its text is answered this once")
    async def post_token(asked: TokenRequest) -> GivenTokenView:
        if asked.holder is Holder.REPRESENTATIVE:
            await services.representatives.get(asked.name)
        given = await tokens.give(asked.holder, asked.name, asked.network or network, days=asked.days)
        return GivenTokenView(token=given.token, about=TokenView.of(given.about))

    @router.get("/tokens", summary="The tokens that were given out")
    async def get_tokens() -> list[TokenView]:
        return [TokenView.of(one) for one in await tokens.list()]

    @router.delete("/tokens/{token_id}", summary="Make a token void")
    async def delete_token(token_id: str) -> TokenView:
        return TokenView.of(await tokens.revoke(token_id))

    return router
