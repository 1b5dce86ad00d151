"""Jobs' connections to the hosts that they were allowed: who may, how many, what is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from orchestrator.domain.egress.patterns import HostPattern, PatternRefused, is_host, parse_patterns
from orchestrator.domain.jobs import Job, JobId, JobMode, JobState
from orchestrator.errors import BadRequest, EgressFailed, EgressRefused, EgressUnavailable
from orchestrator.ports.egress import Carried, ConnectionDenied, EgressProxy, ProxyFailed, Way
from orchestrator.ports.errors import OwnerMissing
from orchestrator.services.timeline import Timeline

_MAY = frozenset({JobState.STARTING, JobState.RUNNING})
_SHOWN_HOSTS = 20


@dataclass(frozen=True, slots=True)
class EgressBounds:
    """What a job may have at a time.

    Attributes:
        tunnels: open connections of one job; `all_tunnels` of all jobs together.
        idle_s: how long a connection may carry nothing, or its slower end take nothing.
    """

    tunnels: int = 64
    all_tunnels: int = 400
    idle_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Told:
    """Tells a job's timeline of a connection."""

    timeline: Timeline

    async def __call__(self, carried: Carried) -> None:
        """Store the event, unless the job was forgotten meanwhile."""
        data = asdict(carried)
        job_id = JobId(data.pop("job_id"))
        data["outcome"] = "refused" if carried.cause in REFUSALS else "failed" if carried.cause else "carried"
        try:
            await self.timeline.note(job_id, "egress", **data)
        except OwnerMissing:
            return


REFUSALS = frozenset({"not_allowed", "private_address"})


class Egress:
    """Opens tunnels through the proxy and knows all that are open."""

    def __init__(self, proxy: EgressProxy, bounds: EgressBounds | None = None) -> None:
        self._proxy = proxy
        self._bounds = bounds or EgressBounds()
        self._open: dict[JobId, set[asyncio.Task[object]]] = {}
        self._admitted: set[JobId] = set()

    def allowed(self, hosts: Sequence[str], mode: JobMode) -> tuple[str, ...]:
        """A job's hosts as they are kept, before it is accepted.

        Raises:
            BadRequest: a pattern names no host, or the job has no container.
            EgressUnavailable: nothing here could carry a connection; the message has the command.
        """
        try:
            patterns = parse_patterns(hosts)
        except PatternRefused as error:
            raise BadRequest(str(error)) from None
        if patterns and mode is JobMode.IN_PROCESS:
            raise BadRequest("an in-process job has no commands that could reach a host")
        if patterns and (missing := self._proxy.missing()):
            raise EgressUnavailable(missing)
        return tuple(map(str, patterns))

    async def admit(self, job: Job) -> None:
        """Make ready what the job was allowed, before it starts; nothing for a job without hosts.

        Raises:
            EgressUnavailable: it can't be had.
        """
        if not job.spec.allow_hosts:
            return
        try:
            await self._proxy.admit(job.id, parse_patterns(job.spec.allow_hosts))
        except ProxyFailed as error:
            raise EgressUnavailable(str(error)) from error
        self._admitted.add(job.id)

    @asynccontextmanager
    async def tunnel(self, job: Job, host: str, port: int) -> AsyncGenerator[Way]:
        """A connection of a running job; it ends with the context, and the caller's task with the job.

        Raises:
            EgressRefused: the job may not have it.
            EgressFailed: it may, and it can't be made.
            EgressUnavailable: the proxy does not answer.
        """
        self._check(job, host, port)
        task = asyncio.current_task()
        assert task is not None
        self._open.setdefault(job.id, set()).add(task)
        try:
            if job.id not in self._admitted:
                await self.admit(job)  # an earlier run had admitted it
            way = await self._connected(job, host, port)
            try:
                yield way
            finally:
                way[1].close()
        finally:
            self._let_go(job.id, task)

    async def keep(self, jobs: Iterable[Job]) -> None:
        """Close what belongs to any job but those of these that still run."""
        running = {job.id for job in jobs if job.state in _MAY}
        for job_id in self._open.keys() - running:
            for task in self._open[job_id]:
                task.cancel()
        gone = self._admitted - running
        self._admitted -= gone
        if gone:
            try:
                await self._proxy.dismiss(gone)
            except ProxyFailed:
                return  # the next job that needs it starts it anew, without these

    def _check(self, job: Job, host: str, port: int) -> None:
        if job.state not in _MAY:
            raise EgressRefused("the job is ending; it reaches nothing any more", "job_ending")
        if not job.spec.allow_hosts:
            raise EgressRefused(
                f"{host[:253]} is not allowed for this job, which was allowed no host;"
                f" ask the operator for --allow-host {_named(host, port)}",
                "not_allowed",
            )
        if not is_host(host):
            raise EgressRefused("ask for a host by its name, or by an IPv4 address", "not_a_host")
        mine, all_open = len(self._open.get(job.id, ())), sum(map(len, self._open.values()))
        if mine >= self._bounds.tunnels or all_open >= self._bounds.all_tunnels:
            raise EgressRefused(
                f"this job has {mine} connections open and may have no more; close some first", "too_many"
            )

    async def _connected(self, job: Job, host: str, port: int) -> Way:
        try:
            return await self._proxy.connect(job.id, host, port)
        except ConnectionDenied as denied:
            raise _explained(denied, host, port, parse_patterns(job.spec.allow_hosts)) from None
        except ProxyFailed as error:
            raise EgressUnavailable(str(error)) from error

    def _let_go(self, job_id: JobId, task: asyncio.Task[object]) -> None:
        tasks = self._open.get(job_id)
        if tasks is not None:
            tasks.discard(task)
            if not tasks:
                del self._open[job_id]

    @property
    def idle_s(self) -> float:
        """How long a connection may carry nothing."""
        return self._bounds.idle_s


def _explained(
    denied: ConnectionDenied, host: str, port: int, allowed: Sequence[HostPattern]
) -> EgressRefused | EgressFailed:
    at = f"{host}:{port}"
    match denied.cause:
        case "not_allowed":
            shown = ", ".join(map(str, allowed[:_SHOWN_HOSTS]))
            more = f" and {len(allowed) - _SHOWN_HOSTS} more" if len(allowed) > _SHOWN_HOSTS else ""
            return EgressRefused(
                f"{at} is not allowed for this job; allowed: {shown}{more};"
                f" ask the operator for --allow-host {_named(host, port)}",
                denied.cause,
            )
        case "private_address":
            return EgressRefused(
                f"{host} leads to an address that is not public, which no job reaches; the operator can open"
                " its network with PORTSIDE_EGRESS_ALLOW_PRIVATE",
                denied.cause,
            )
        case "no_such_name":
            return EgressFailed(
                f"{host} has no address: the name is wrong, or DNS does not answer", denied.cause
            )
        case "not_reached":
            return EgressFailed(f"nobody answers at {at}; try again later", denied.cause, retryable=True)


def _named(host: str, port: int) -> str:
    return host[:253] if port in (80, 443) else f"{host[:253]}:{port}"
