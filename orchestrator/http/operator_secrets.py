"""The operator API for secrets: names go out, values only come in."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, SecretStr

from orchestrator.http.auth import OperatorGate
from orchestrator.http.gated import gated
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.ports.secrets import SecretName
from orchestrator.services.secrets import SecretService


class SecretRequest(OperatorRequest):
    """A secret's value."""

    value: SecretStr


class SecretView(BaseModel):
    """A secret without its value; `version` counts how often it was set."""

    name: str
    version: int
    updated_at: datetime

    @classmethod
    def of(cls, secret: SecretName) -> SecretView:
        """The view of a secret."""
        return cls(name=secret.name, version=secret.version, updated_at=secret.updated_at)


def secrets_router(gate: OperatorGate, secrets: SecretService) -> APIRouter:
    """Every secret route for operators."""
    router = APIRouter(prefix="/api/v1", tags=["secrets"], route_class=gated(gate))

    @router.get("/secrets", summary="The secrets' names")
    async def get_secrets() -> list[SecretView]:
        return [SecretView.of(secret) for secret in await secrets.names()]

    @router.put("/secrets/{name}", summary="Set a secret")
    async def put_secret(name: str, asked: SecretRequest) -> SecretView:
        return SecretView.of(await secrets.set(name, asked.value.get_secret_value()))

    @router.delete("/secrets/{name}", status_code=204, summary="Remove a secret")
    async def delete_secret(name: str) -> None:
        await secrets.remove(name)

    return router
