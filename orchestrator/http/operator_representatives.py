"""The operator API for representatives: rights, confirmations, and the channel to the operator."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from orchestrator.domain.network.confirmations import Confirmation
from orchestrator.domain.network.rights import Right
from orchestrator.http.auth import OperatorGate
from orchestrator.http.gated import gated
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.ports.representatives import ChannelMessage
from orchestrator.services.representatives import MAX_BODY_CHARS, Representatives, Standing

_ONE = "/representatives/{name}"


class RepresentativeRequest(OperatorRequest):
    """For whom a representative acts."""

    person: str = Field(min_length=1, max_length=64)


class RightsRequest(OperatorRequest):
    """All rights in one network; none takes them away."""

    rights: list[Right] = Field(max_length=len(Right))


class SayRequest(OperatorRequest):
    """Something to say to a representative."""

    representative: str = Field(min_length=1, max_length=64)
    body: str = Field(min_length=1, max_length=MAX_BODY_CHARS)
    conversation_id: str | None = Field(default=None, min_length=1, max_length=128)


class RepresentativeView(BaseModel):
    """A representative: what it was granted, and what comes of it with its person's access."""

    name: str
    person: str
    created_at: datetime
    active_network: str | None
    grants: dict[str, list[Right]]
    effective: dict[str, list[Right]]

    @classmethod
    def of(cls, standing: Standing) -> RepresentativeView:
        """The view of a representative."""
        one = standing.representative
        return cls(
            name=one.name,
            person=one.person,
            created_at=one.created_at,
            active_network=one.active_network,
            grants={network: [r for r in Right if r in given] for network, given in one.grants.items()},
            effective={str(network): rights for network, rights in standing.effective.items()},
        )


class ConfirmationView(BaseModel):
    """A call that waits for a yes."""

    id: str
    representative: str
    network: str
    says: str
    created_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None

    @classmethod
    def of(cls, one: Confirmation) -> ConfirmationView:
        """The view of a confirmation."""
        return cls(
            id=one.id,
            representative=one.representative,
            network=one.network,
            says=one.says,
            created_at=one.created_at,
            expires_at=one.expires_at,
            confirmed_at=one.confirmed_at,
        )


class ChannelMessageView(BaseModel):
    """One message of the channel."""

    id: str
    representative: str
    conversation_id: str
    from_operator: bool
    body: str
    created_at: datetime

    @classmethod
    def of(cls, one: ChannelMessage) -> ChannelMessageView:
        """The view of a message."""
        return cls(
            id=one.id,
            representative=one.representative,
            conversation_id=one.conversation_id,
            from_operator=one.from_operator,
            body=one.body,
            created_at=one.created_at,
        )


def representatives_router(gate: OperatorGate, representatives: Representatives) -> APIRouter:
    """Every route about representatives for operators."""
    router = APIRouter(prefix="/api/v1", tags=["representatives"], route_class=gated(gate))
    _rights_routes(router, representatives)
    _confirmation_routes(router, representatives)
    _channel_routes(router, representatives)
    return router


def _rights_routes(router: APIRouter, representatives: Representatives) -> None:
    @router.get("/representatives", summary="The representatives")
    async def get_representatives() -> list[RepresentativeView]:
        return [RepresentativeView.of(one) for one in await representatives.list()]

    @router.put(_ONE, summary="Add a representative, or give it to another person")
    async def put_representative(name: str, asked: RepresentativeRequest) -> RepresentativeView:
        return RepresentativeView.of(await representatives.put(name, asked.person))

    @router.delete(_ONE, status_code=204, summary="Forget a representative")
    async def delete_representative(name: str) -> None:
        await representatives.remove(name)

    @router.put(_ONE + "/grants/{network}", summary="Grant a representative rights in a network")
    async def put_grant(name: str, network: str, asked: RightsRequest) -> RepresentativeView:
        return RepresentativeView.of(await representatives.grant(name, network, asked.rights))

    @router.put("/people/{person}/access/{network}", status_code=204, summary="Give a person access")
    async def put_access(person: str, network: str, asked: RightsRequest) -> None:
        await representatives.allow(person, network, asked.rights)


def _confirmation_routes(router: APIRouter, representatives: Representatives) -> None:
    @router.get("/confirmations", summary="Calls that wait for a yes")
    async def get_confirmations() -> list[ConfirmationView]:
        return [ConfirmationView.of(one) for one in await representatives.pending()]

    @router.post("/confirmations/{confirmation_id}/confirm", summary="Agree to a call")
    async def confirm(confirmation_id: str) -> ConfirmationView:
        return ConfirmationView.of(await representatives.confirm(confirmation_id))


def _channel_routes(router: APIRouter, representatives: Representatives) -> None:
    @router.get("/channel", summary="What representatives and the operator said")
    async def get_channel(
        representative: str | None = None,
        conversation_id: str | None = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[ChannelMessageView]:
        found = await representatives.channel(representative, conversation_id, limit)
        return [ChannelMessageView.of(one) for one in found]

    @router.post("/channel", status_code=201, summary="Say something to a representative")
    async def post_channel(asked: SayRequest) -> ChannelMessageView:
        said = await representatives.say(asked.representative, asked.body, asked.conversation_id)
        return ChannelMessageView.of(said)
