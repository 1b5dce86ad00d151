"""Starts agents for the work that waits for them: never two, within the network's bound, with pauses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from orchestrator.domain.jobs import Job, JobSpec, JobState
from orchestrator.domain.launch_wishes import launched_as
from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.launches import AgentLaunch
from orchestrator.domain.network.tasks import HistoryEntry, TaskChange
from orchestrator.errors import BadRequest, EgressUnavailable
from orchestrator.ports.errors import AlreadyExists
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_waiting import Waiting, absent, launch_task, waiting_for
from tool_registry.clock import Clock

_LIVE = frozenset(state for state in JobState if not state.terminal)
_MAX_JOBS = 10_000


@dataclass(frozen=True, slots=True)
class AutostartRules:
    """Bounds, and the model of agents that name none.

    Attributes:
        most: jobs of one network that are not at an end.
    """

    most: int
    default_model: Callable[[], str]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A job to make, whose id is written down already."""

    agent: AgentDefinition
    job_id: str
    task: str


class JobMaker(Protocol):
    """What is asked of the job service."""

    async def list(self, *, states: Collection[JobState] | None = None, limit: int = 100) -> list[Job]:
        """Jobs in these states."""
        ...

    async def find(self, job_id: str) -> Job | None:
        """One job; None when there is none."""
        ...

    async def create(self, spec: JobSpec, *, job_id: str | None = None) -> Job:
        """Accept a job of this id.

        Raises:
            BadRequest: it can't be.
            AlreadyExists: it was made before.
        """
        ...


class Autostart:
    """Looks for work that waits for agents which nobody serves.

    Args:
        store: where networks are kept; a launch is decided in a transaction of its network.
        jobs: makes the jobs.
        clock: the time that is written down.
        ids: names the jobs.
        rules: bounds.
    """

    def __init__(
        self, store: NetworkStore, jobs: JobMaker, clock: Clock, ids: Ids, rules: AutostartRules
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._clock = clock
        self._ids = ids
        self._rules = rules

    async def look(self) -> None:
        """Start what is to be started now; cheap when nothing is.

        Raises:
            StoreError: the database does not answer; the next look goes on where this one stopped.
        """
        for network in await self._store.networks():
            if await self._store.read(network, self._anything):
                await self._look_at(network)

    def _anything(self, reader: NetworkReader) -> bool:
        return any(waiting_for(reader, absent(reader)).values())

    async def _look_at(self, network: NetworkName) -> None:
        present = [
            job for job in await self._jobs.list(states=_LIVE, limit=_MAX_JOBS) if job.spec.network == network
        ]
        ended = await self._ended_jobs(network)

        def decide(tx: NetworkTransaction) -> list[_Wanted]:
            room = self._rules.most - len(present)
            wanted: list[_Wanted] = []
            agents = {one.name: one for one in absent(tx)}
            for name, waiting in waiting_for(tx, list(agents.values())).items():
                if waiting:
                    made = self._decide(tx, agents[name], waiting, present, ended, room - len(wanted))
                    wanted += [] if made is None else [made]
            return wanted

        for one in await self._store.change(network, decide):
            await self._make(network, one)

    async def _ended_jobs(self, network: NetworkName) -> Mapping[str, Job | None]:
        """The jobs of earlier launches whose end was not looked at; removed ones are None."""

        def look(reader: NetworkReader) -> list[str]:
            launches = [reader.launch(one.name) for one in absent(reader)]
            return [one.job_id for one in launches if one is not None and one.made and not one.ended]

        return {job_id: await self._jobs.find(job_id) for job_id in await self._store.read(network, look)}

    def _decide(
        self,
        tx: NetworkTransaction,
        agent: AgentDefinition,
        waiting: Waiting,
        present: list[Job],
        ended: Mapping[str, Job | None],
        room: int,
    ) -> _Wanted | None:
        now = self._clock.now()
        launch = tx.launch(agent.name)
        own = next((job for job in present if job.spec.agent == agent.name), None)
        if own is not None:
            _tell(tx, waiting, f"job {own.id} starts as {agent.name!r} and is not there yet", now)
            return None
        if launch is not None and launch.made and not launch.ended and launch.job_id in ended:
            launch = _looked_back(launch, ended[launch.job_id], waiting, now)
            tx.put_launch(launch)
        if launch is not None and launch.pausing(now):
            _tell(tx, waiting, launch.waits_because(now), now)
            return None
        if launch is not None and not launch.made and not launch.ended:
            return _Wanted(agent, launch.job_id, launch_task(agent, waiting))  # we were cut off before it was
        if room <= 0:
            most = self._rules.most
            why = f"{agent.name!r} is started for it when one of the network's {most} jobs ends"
            _tell(tx, waiting, why, now)
            return None
        launch = (launch or AgentLaunch(agent.name, "", now)).again(self._ids.new(), now)
        tx.put_launch(launch)
        _tell(tx, waiting, launch.waits_because(now), now)
        return _Wanted(agent, launch.job_id, launch_task(agent, waiting))

    async def _make(self, network: NetworkName, wanted: _Wanted) -> None:
        agent = wanted.agent
        spec = JobSpec(
            title=f"{agent.name}: started for waiting work",
            task=wanted.task,
            agent=agent.name,
            network=network,
        )
        try:
            await self._jobs.create(
                launched_as(spec, agent.launch, self._rules.default_model()), job_id=wanted.job_id
            )
        except (BadRequest, EgressUnavailable) as error:
            await self._note(network, agent.name, wanted.job_id, failure=error.message)
        except AlreadyExists:
            await self._note(network, agent.name, wanted.job_id)
        else:
            await self._note(network, agent.name, wanted.job_id)

    async def _note(self, network: NetworkName, name: AgentName, job_id: str, *, failure: str = "") -> None:
        def note(tx: NetworkTransaction) -> None:
            launch = tx.launch(name)
            if launch is None or launch.job_id != job_id:
                return
            if not failure:
                tx.put_launch(replace(launch, made=True))
                return
            now = self._clock.now()
            failed = launch.failed(failure, now)
            tx.put_launch(failed)
            agents = [one for one in absent(tx) if one.name == name]
            for waiting in waiting_for(tx, agents).values():
                _tell(tx, waiting, failed.waits_because(now), now)

        await self._store.change(network, note)


def _looked_back(launch: AgentLaunch, job: Job | None, waiting: Waiting, now: datetime) -> AgentLaunch:
    """What the end of an agent's last job means for the next one."""
    if job is not None and job.state is not JobState.COMPLETED:
        return launch.failed(f"job {job.id} {job.state.value}: {job.reason}", now)
    if waiting.since <= launch.at:
        return launch.failed(f"job {launch.job_id} ended and left it", now)
    return launch.succeeded()


def _tell(tx: NetworkTransaction, waiting: Waiting, why: str, now: datetime) -> None:
    for task in waiting.tasks:
        if task.reason != why:
            tx.put_task(TaskChange(replace(task, reason=why), HistoryEntry(now, task.state, why)))
