"""The operator API for what goes on in a network, and for the humans in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from orchestrator.domain.network.task_states import TaskState
from orchestrator.http import mail_messages as mail
from orchestrator.http import network_messages as messages
from orchestrator.http import task_messages
from orchestrator.http.auth import OperatorGate
from orchestrator.http.gated import gated
from orchestrator.services.network_mail import Ask
from orchestrator.services.network_overview import NetworkOverview
from orchestrator.services.network_people import NetworkPeople
from orchestrator.services.network_signatures import NetworkSignatures
from orchestrator.services.network_tasks import Delegation

_HUMAN = "/agents/{name}"
Limit = Annotated[int, Query(ge=1, le=1000)]


@dataclass(frozen=True, slots=True)
class NetworkServices:
    """What the routes call."""

    overview: NetworkOverview
    signatures: NetworkSignatures
    people: NetworkPeople


def network_router(gate: OperatorGate, services: NetworkServices) -> APIRouter:
    """Every network route for operators but those of agents' definitions."""
    router = APIRouter(prefix="/api/v1/networks/{network}", tags=["network"], route_class=gated(gate))
    _read_routes(router, services.overview, services.signatures)
    _human_routes(router, services.people)
    return router


def _read_routes(router: APIRouter, overview: NetworkOverview, signatures: NetworkSignatures) -> None:
    @router.get("/status", summary="A network in numbers")
    async def get_status(network: str) -> messages.StatusView:
        return messages.StatusView.of(await overview.status(network))

    @router.get("/threads", summary="Threads, the youngest first")
    async def get_threads(network: str, limit: Limit = 100) -> list[mail.ThreadView]:
        return [mail.ThreadView.of(one) for one in await overview.threads(network, limit)]

    @router.get("/threads/{thread_id}", summary="A thread with its messages")
    async def get_thread(network: str, thread_id: str) -> mail.ThreadDetail:
        return mail.ThreadDetail.of_record(await overview.thread(network, thread_id))

    @router.get("/tasks", summary="Tasks, those changed last first")
    async def get_tasks(
        network: str, state: Annotated[list[TaskState] | None, Query()] = None, limit: Limit = 100
    ) -> list[task_messages.TaskView]:
        return [task_messages.TaskView.of(one) for one in await overview.tasks(network, state or (), limit)]

    @router.get("/tasks/{task_id}", summary="A task with its history")
    async def get_task(network: str, task_id: str) -> task_messages.TaskDetail:
        return task_messages.TaskDetail.of_record(await overview.task(network, task_id))

    @router.get("/claims", summary="Claims that hold now")
    async def get_claims(network: str) -> list[messages.ClaimView]:
        return [messages.ClaimView.of(one) for one in await overview.claims(network)]

    @router.get("/verify", summary="Check the signatures of one thread, or of all")
    async def get_verdict(network: str, thread_id: str | None = None) -> mail.VerdictView:
        return mail.VerdictView.of(await signatures.verify(network, thread_id))


def _human_routes(router: APIRouter, people: NetworkPeople) -> None:
    @router.get(_HUMAN + "/inbox", summary="What waits for a human")
    async def get_inbox(network: str, name: str) -> list[mail.InboxItemView]:
        return [mail.InboxItemView.of(one) for one in await people.inbox(network, name)]

    @router.post(_HUMAN + "/inbox/seen", status_code=204, summary="A human was shown this")
    async def post_seen(network: str, name: str, asked: mail.SeenRequest) -> None:
        await people.seen(network, name, asked.delivery_ids)

    @router.post(_HUMAN + "/ask", status_code=201, summary="Ask as a human")
    async def post_ask(network: str, name: str, asked: mail.AskRequest) -> mail.MessageView:
        ask = Ask(asked.body, asked.to, asked.to_instance, asked.thread_id, asked.subject)
        return mail.MessageView.sent(await people.ask(network, name, ask))

    @router.post(_HUMAN + "/reply", status_code=201, summary="Reply as a human")
    async def post_reply(network: str, name: str, asked: mail.ReplyRequest) -> mail.MessageView:
        return mail.MessageView.sent(await people.reply(network, name, asked.thread_id, asked.body))

    @router.post(_HUMAN + "/tasks", status_code=201, summary="Delegate as a human")
    async def post_task(
        network: str, name: str, asked: task_messages.DelegateRequest
    ) -> task_messages.TaskView:
        wanted = Delegation(
            asked.objective,
            title=asked.title,
            acceptance_criteria=asked.acceptance_criteria,
            to_agent=asked.to,
            resource=asked.resource,
        )
        return task_messages.TaskView.of(await people.delegate(network, name, wanted))

    @router.post(_HUMAN + "/tasks/{task_id}", summary="Move a task as a human")
    async def post_move(
        network: str, name: str, task_id: str, asked: task_messages.MoveRequest
    ) -> task_messages.TaskView:
        status = TaskState(asked.status)
        return task_messages.TaskView.of(await people.move(network, name, task_id, status, asked.reason))
