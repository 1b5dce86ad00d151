"""From a network tool's arguments to the service, and back to JSON."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.network.artifacts import ARTIFACT_TYPES
from orchestrator.domain.network.claims import DEFAULT_TTL_S, ScopeType
from orchestrator.domain.network.identities import Actor
from orchestrator.domain.network.task_states import TaskState
from orchestrator.services import network_views as views
from orchestrator.services.network import NetworkService
from orchestrator.services.network_mail import Ask
from orchestrator.services.network_tasks import Delegation

Params = dict[str, Any]


class NetworkCalls:
    """One method a tool; arguments fit the tool's schema."""

    def __init__(self, service: NetworkService) -> None:
        self._service = service

    async def whoami(self, actor: Actor, _params: Params) -> dict[str, Any]:
        """`network_whoami`."""
        return views.whoami_view(actor.network, await self._service.directory.whoami(actor))

    async def discover(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_discover`."""
        found = await self._service.directory.discover(actor, params.get("resourceKey"), params.get("action"))
        return views.discovery_view(found)

    async def ask(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_ask`."""
        ask = Ask(
            params["body"],
            to_agent=params.get("toAgent"),
            to_instance=params.get("toInstance"),
            thread_id=params.get("threadId"),
            subject=params.get("subject"),
            task_id=params.get("taskId"),
            resource=params.get("resource"),
        )
        return views.sent_view(await self._service.mail.ask(actor, ask))

    async def inbox(self, actor: Actor, _params: Params) -> dict[str, Any]:
        """`network_inbox`."""
        return views.inbox_view(await self._service.inbox.fetch(actor))

    async def reply(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_reply`."""
        return views.sent_view(await self._service.mail.reply(actor, params["threadId"], params["body"]))

    async def delegate(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_delegate`."""
        wanted = Delegation(
            params["objective"],
            title=params.get("title"),
            acceptance_criteria=params.get("acceptanceCriteria", ()),
            to_agent=params.get("toAgent"),
            to_instance=params.get("toInstance"),
            resource=params.get("resource"),
        )
        return views.task_view(await self._service.tasks.delegate(actor, wanted))

    async def task_get(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_task_get`."""
        return views.task_record_view(await self._service.tasks.get(actor, params["taskId"]))

    async def task_update(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_task_update`."""
        status = TaskState(params["status"])
        task = await self._service.tasks.update(actor, params["taskId"], status, params.get("reason", ""))
        return views.task_view(task)

    async def claim(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_claim`."""
        claim = await self._service.claims.claim(
            actor,
            params["scope"],
            scope_type=ScopeType(params.get("scopeType", ScopeType.PATH)),
            resource_id=params.get("resourceId"),
            task_id=params.get("taskId"),
            # JSON Schema counts 60.0 as an integer.
            ttl_s=int(params.get("ttlSeconds", DEFAULT_TTL_S)),
        )
        return views.claim_view(claim)

    async def release(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_release`."""
        return views.claim_view(await self._service.claims.release(actor, params["claimId"]))

    async def publish_artifact(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_publish_artifact`."""
        artifact = await self._service.directory.publish_artifact(
            actor,
            params["uri"],
            label=params.get("label", ""),
            artifact_type=params.get("type", ARTIFACT_TYPES[-1]),
            task_id=params.get("taskId"),
        )
        return views.artifact_view(artifact)

    async def register_capabilities(self, actor: Actor, params: Params) -> dict[str, Any]:
        """`network_register_capabilities`."""
        return views.capabilities_view(
            await self._service.directory.register_capabilities(actor, params["capabilities"])
        )
