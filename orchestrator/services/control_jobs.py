"""What representatives start, wake and stop: real jobs; to stop one takes a person's yes."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestrator.domain.jobs import Job, JobMode, JobSpec, JobState
from orchestrator.domain.launch_wishes import launched_as
from orchestrator.domain.network.agents import AgentDefinition, AgentKind, Instance
from orchestrator.domain.network.confirmations import Confirmation, asked
from orchestrator.domain.network.identities import AgentName, InstanceId, NetworkName
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.rights import Right
from orchestrator.errors import BadRequest, Conflict, EgressUnavailable
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkStore
from orchestrator.ports.representatives import ConfirmationStore
from orchestrator.services import network_views as views
from orchestrator.services.control_access import Acting
from orchestrator.services.jobs import JobService
from orchestrator.services.network_members import Refused, agent_name
from tool_registry.catalogue import canonical_json
from tool_registry.clock import Clock

Params = dict[str, Any]
SERVE = (
    "You were started to serve as the agent {agent!r} of a network. Read network_inbox: do what you are "
    "asked and the tasks that you take, answer with network_reply, report with network_task_update. Finish "
    "when nothing is left."
)
_MAX_JOBS = 10_000
_UNDER_WAY = frozenset({JobState.QUEUED, JobState.STARTING, JobState.RUNNING})


class ControlJobs:
    """One method a tool; arguments fit the tool's schema.

    Args:
        store: the networks.
        jobs: starts, prompts and cancels.
        confirmations: calls that wait for a person's yes.
        model: of agents that name none.
        clock: dates confirmations.
        ids: names them.
    """

    def __init__(
        self,
        store: NetworkStore,
        jobs: JobService,
        confirmations: ConfirmationStore,
        *,
        model: str,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._confirmations = confirmations
        self._model = model
        self._clock = clock
        self._ids = ids
        self._launching = asyncio.Lock()

    async def launch(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_launch_agent`."""
        network = acting.network(params.get("networkId"), Right.OPERATE)
        named = params.get("definitionId") or params.get("agentName")
        if named is None:
            raise Refused(not_found("agent", ""))
        agent = await self._agent(network, named)
        return await self._launched(network, agent, JobMode(params.get("runtime", JobMode.HOSTED)))

    async def wake(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_wake_agent`."""
        network, now = acting.network(params.get("networkId"), Right.OPERATE), self._clock.now()
        instance = None
        if "toInstance" in params:
            instance = await self._instance(network, params["toInstance"])
        elif "toAgent" in params:
            agent = await self._agent(network, params["toAgent"])
            instances = await self._store.read(network, lambda reader: reader.live_instances())
            instance = next(
                (one for one in instances if one.agent == agent.name and one.available(now)), None
            )
            if instance is None:
                return {"how": "launched", **await self._launched(network, agent, JobMode.HOSTED)}
        else:
            raise Refused(Refusal("no_recipient", "say whom to wake: toAgent or toInstance"))
        return await self._prompted(acting, network, instance, params.get("reason", "look at network_inbox"))

    async def stop(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_stop_agent`."""
        network, job = await self._job(acting, params)
        waiting = await self._confirmed(acting, network, "control_stop_agent", job, params)
        if waiting is not None:
            return waiting
        await self._jobs.cancel(job.id, f"stopped by {acting.name} for {acting.representative.person}")
        return _done(network, "stopping", job)

    async def restart(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_restart_agent`."""
        network, job = await self._job(acting, params)
        waiting = await self._confirmed(acting, network, "control_restart_agent", job, params)
        if waiting is not None:
            return waiting
        new = await self._created(job.spec)
        await self._jobs.cancel(job.id, f"restarted by {acting.name} for {acting.representative.person}")
        return _done(network, "restarting", new)

    # --- confirmations -----------------------------------------------------------------------------------

    async def _confirmed(
        self, acting: Acting, network: NetworkName, tool: str, job: Job, params: Params
    ) -> dict[str, Any] | None:
        """None when a person agreed to exactly this call, once; else what to wait for.

        Raises:
            Refused: `confirmation_pending`, `confirmation_invalid`.
        """
        now = self._clock.now()
        verb = "stop" if tool == "control_stop_agent" else "restart"
        who = f"{acting.name} (for {acting.representative.person})"
        says = f"{who} wants to {verb} {job.spec.agent}, job {job.id}"
        call = canonical_json([tool, job.instance_id])
        wanted = Confirmation("", acting.name, network, call, says, now, now)
        waiting = [one for one in await self._confirmations.open(now) if one.is_for(wanted)]
        given = params.get("confirmationId")
        if given is not None:
            await self._spend(given, wanted, waiting)
            return None
        found = waiting[0] if waiting else asked(self._ids.new(), wanted, now)
        if not waiting:
            await self._confirmations.add(found)
        return _waits(network, found, job)

    async def _spend(self, given: str, wanted: Confirmation, waiting: list[Confirmation]) -> None:
        now = self._clock.now()
        used = await self._confirmations.change(
            given, lambda one: one.used(now) if one.is_for(wanted) else None
        )
        if used is not None:
            return
        for one in waiting:
            if one.id == given and one.confirmed_at is None:
                raise Refused(
                    Refusal(
                        "confirmation_pending",
                        f"nobody has agreed yet; an operator does with: portside network confirm {one.id}",
                        {"confirmation_id": one.id, "expires_at": views.time_view(one.expires_at)},
                    )
                )
        raise Refused(
            Refusal(
                "confirmation_invalid",
                "this confirmation is unknown, of another call, too old, or was used; call without one to "
                "ask anew",
            )
        )

    # --- jobs --------------------------------------------------------------------------------------------

    async def _launched(self, network: NetworkName, agent: AgentDefinition, mode: JobMode) -> dict[str, Any]:
        """A job that serves the agent: the one that is under way, else a new one."""
        async with self._launching:
            for job in await self._jobs.list(states=_UNDER_WAY, limit=_MAX_JOBS):
                if (job.spec.network, job.spec.agent) == (network, agent.name):
                    return _launch(network, job, launched=False)
            spec = JobSpec(
                title=f"serve as {agent.name}",
                task=SERVE.format(agent=str(agent.name)),
                agent=agent.name,
                network=network,
                mode=mode,
            )
            new = await self._created(launched_as(spec, agent.launch, self._model))
        return _launch(network, new, launched=True)

    async def _created(self, spec: JobSpec) -> Job:
        try:
            return await self._jobs.create(spec)
        except (BadRequest, EgressUnavailable) as error:
            raise Refused(Refusal("not_launched", error.message)) from None

    async def _prompted(
        self, acting: Acting, network: NetworkName, instance: Instance, reason: str
    ) -> dict[str, Any]:
        how, job_id = "reachable", instance.job_id
        if job_id is not None:
            text = f"{acting.name} wakes you for {acting.representative.person}: {reason}"
            try:
                await self._jobs.prompt(job_id, text)
                how = "prompted"
            except Conflict:
                how = "reachable"  # a command takes no prompts; its inbox is there
        state = None if job_id is None else (await self._jobs.get(job_id)).state.value
        return {
            "how": how,
            "network": network,
            "agent": instance.agent,
            "instance_id": instance.id,
            "job_id": job_id,
            "state": state,
            "launched": False,
        }

    async def _job(self, acting: Acting, params: Params) -> tuple[NetworkName, Job]:
        network = acting.network(params.get("networkId"), Right.OPERATE)
        instance = await self._instance(network, params["instanceId"])
        if instance.job_id is None:
            raise Refused(
                Refusal("not_a_job", f"instance {instance.id!r} is a session from outside; its owner ends it")
            )
        return network, await self._jobs.get(instance.job_id)

    async def _instance(self, network: NetworkName, named: str) -> Instance:
        found = await self._store.read(network, lambda reader: reader.instance(InstanceId(named)))
        if found is None:
            raise Refused(not_found("instance", named))
        if not found.live:
            raise Refused(Refusal("target_ended", f"instance {named!r} has ended", {"agent": found.agent}))
        return found

    async def _agent(self, network: NetworkName, named: str) -> AgentDefinition:
        name: AgentName = agent_name(named)
        found = await self._store.read(network, lambda reader: reader.definition(name))
        if found is None:
            raise Refused(not_found("agent", named))
        if found.kind is not AgentKind.WORKER:
            raise Refused(
                Refusal("not_served_by_jobs", f"{name!r} is a {found.kind.value}; no job can run as it")
            )
        return found


def _launch(network: NetworkName, job: Job, *, launched: bool) -> dict[str, Any]:
    return {
        "network": network,
        "agent": job.spec.agent,
        "instance_id": job.instance_id,
        "job_id": job.id,
        "state": job.state.value,
        "launched": launched,
    }


def _done(network: NetworkName, status: str, job: Job) -> dict[str, Any]:
    return {
        "status": status,
        "network": network,
        "instance_id": job.instance_id,
        "job_id": job.id,
        "confirmation_id": None,
        "expires_at": None,
        "says": None,
    }


def _waits(network: NetworkName, confirmation: Confirmation, job: Job) -> dict[str, Any]:
    return {
        "status": "confirmation_required",
        "network": network,
        "instance_id": job.instance_id,
        "job_id": job.id,
        "confirmation_id": confirmation.id,
        "expires_at": views.time_view(confirmation.expires_at),
        "says": confirmation.says,
    }
