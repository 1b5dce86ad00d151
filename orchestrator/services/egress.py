"""Jobs' connections to the hosts that they were allowed: who may, how many, what is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

import structlog

from orchestrator.domain.egress.patterns import HostPattern, PatternRefused, is_host, parse_patterns
from orchestrator.domain.jobs import Job, JobId, JobMode, JobState
from orchestrator.errors import BadRequest, EgressFailed, EgressRefused, EgressUnavailable
from orchestrator.ports.egress import Carried, ConnectionDenied, EgressProxy, ProxyFailed, Way
from orchestrator.ports.errors import OwnerMissing
from orchestrator.services.egress_share import Share
from orchestrator.services.timeline import Timeline

_log = structlog.get_logger(__name__)
_MAY = frozenset({JobState.STARTING, JobState.RUNNING})
_REFUSALS = frozenset({"not_allowed", "private_address"})
_SHOWN_HOSTS = 20


@dataclass(frozen=True, slots=True)
class EgressBounds:
    """What a job may have at a time.

    Attributes:
        tunnels: open connections of one job; `all_tunnels` of all jobs together.
        idle_s: how long a connection may carry nothing, or its slower end take nothing.
        rate_per_s: new connections of one job, over a longer time; `burst` at once. More of them wait.
        bytes: of all connections of one job, both ways, in one run of the orchestrator.
    """

    tunnels: int = 64
    all_tunnels: int = 256
    idle_s: float = 600.0
    rate_per_s: float = 20.0
    burst: int = 200
    bytes: int = 32 * 2**30


@dataclass(frozen=True, slots=True)
class Told:
    """Tells a job's timeline of a connection."""

    timeline: Timeline

    async def __call__(self, carried: Carried) -> None:
        """Store the event, unless the job was forgotten meanwhile."""
        data = asdict(carried)
        job_id = JobId(data.pop("job_id"))
        data["outcome"] = (
            "refused" if carried.cause in _REFUSALS else "failed" if carried.cause else "carried"
        )
        try:
            await self.timeline.note(job_id, "egress", **data)
        except OwnerMissing:
            return


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A connection to an allowed host.

    Attributes:
        spend: counts bytes that it carries; False ends it.
        idle_s: how long it may carry nothing.
    """

    way: Way
    spend: Callable[[int], bool]
    idle_s: float


class Egress:
    """Opens tunnels through the proxy and knows all that are open."""

    def __init__(self, proxy: EgressProxy, bounds: EgressBounds | None = None) -> None:
        self._proxy = proxy
        self._bounds = bounds or EgressBounds()
        self._shares: dict[JobId, Share] = {}
        self._admitted: set[JobId] = set()
        self._dismissing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Nothing of an earlier run leads out any more."""
        await self._proxy.end_leftovers()

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
    async def tunnel(self, job: Job, host: str, port: int) -> AsyncGenerator[Tunnel]:
        """A connection of a running job; it ends with the context, and the caller's task with the job.

        Raises:
            EgressRefused: the job may not have it.
            EgressFailed: it may, and it can't be made.
            EgressUnavailable: the proxy does not answer.
        """
        share = self._share(job, host, port)
        task = asyncio.current_task()
        assert task is not None
        share.open.add(task)
        try:
            await share.turn()
            if job.id not in self._admitted:
                await self.admit(job)  # an earlier run had admitted it
            way = await self._connected(job, host, port)
            try:
                yield Tunnel(way, share.spend, self._bounds.idle_s)
            finally:
                way[1].close()
        finally:
            share.open.discard(task)

    def keep(self, jobs: Iterable[Job]) -> None:
        """Close what belongs to any job but those of these that still run, or are about to."""
        running = {job.id for job in jobs if job.state in _MAY or job.state is JobState.QUEUED}
        for job_id in self._shares.keys() - running:
            for task in self._shares.pop(job_id).open:
                task.cancel()
        gone = self._admitted - running
        self._admitted -= gone
        if gone:
            # Squid takes its time; whoever looks after jobs has none.
            dismissing = asyncio.ensure_future(self._dismiss(gone))
            self._dismissing.add(dismissing)
            dismissing.add_done_callback(self._dismissing.discard)

    async def _dismiss(self, job_ids: set[JobId]) -> None:
        try:
            await self._proxy.dismiss(job_ids)
        except ProxyFailed as error:
            # Nobody has their keys; the next job that needs squid starts it anew, without them.
            _log.warning("egress_not_dismissed", reason=str(error))

    def _share(self, job: Job, host: str, port: int) -> Share:
        """What the job has of the way out, when it may have one connection more."""
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
        bounds = self._bounds
        share = self._shares.get(job.id)
        if share is None:
            share = self._shares[job.id] = Share(
                rate_per_s=bounds.rate_per_s, burst=bounds.burst, left_bytes=bounds.bytes
            )
        mine, everybody = len(share.open), sum(len(one.open) for one in self._shares.values())
        if mine >= bounds.tunnels or everybody >= bounds.all_tunnels:
            raise EgressRefused(
                f"this job has {mine} connections open and may have no more; close some first", "too_many"
            )
        if share.left_bytes <= 0:
            raise EgressRefused(
                f"this job's connections have carried {bounds.bytes:,} bytes and may carry no more",
                "too_much",
            )
        return share

    async def _connected(self, job: Job, host: str, port: int) -> Way:
        try:
            return await self._proxy.connect(job.id, host, port)
        except ConnectionDenied as denied:
            raise _explained(denied, host, port, parse_patterns(job.spec.allow_hosts)) from None
        except ProxyFailed as error:
            raise EgressUnavailable(str(error)) from error


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
