"""Job tokens: issued, verified, renewed, revoked with their job.

A verdict is cached by the token and ends with its `exp`. Whether the job still lets its worker in is asked at
every call.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.domain.jobs import Job
from orchestrator.errors import JobMismatch, JobNotActive, Unauthorised
from orchestrator.services.active_jobs import ActiveJobs, may_call
from orchestrator.services.signing import LEEWAY_S, TokenSigner, invalid_token
from tool_registry.clock import Clock

WORKER_AUDIENCE = "portside-worker"
_MAX_CACHED = 10_000


@dataclass(frozen=True, slots=True)
class WorkerClaims:
    """What a verified worker token says.

    Attributes:
        expires_at: `exp`, in seconds since the epoch.
    """

    job_id: str
    attempt: int
    agent: str
    network: str
    token_id: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A fresh token."""

    token: str
    expires_at: datetime


class TokenService:
    """Signs and checks worker tokens.

    Args:
        signer: signs and reads them; its keys are loaded.
        lifetime_s: of a token; the worker renews at half of it.
        renew_grace_s: how long after `exp` a live job's token may still be renewed.
    """

    def __init__(
        self,
        signer: TokenSigner,
        jobs: ActiveJobs,
        clock: Clock,
        *,
        lifetime_s: float = 3600.0,
        renew_grace_s: float = 600.0,
    ) -> None:
        self._signer = signer
        self._jobs = jobs
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._renew_grace_s = renew_grace_s
        self._verdicts: OrderedDict[str, WorkerClaims] = OrderedDict()

    def issue(self, job: Job, attempt: int) -> IssuedToken:
        """A token for one attempt of a job."""
        expires = self._clock.now() + timedelta(seconds=self._lifetime_s)
        token = self._signer.sign(
            WORKER_AUDIENCE,
            job.id,
            expires,
            att=attempt,
            scope="worker",
            agent=job.spec.agent,
            network=job.spec.network,
        )
        return IssuedToken(token, expires)

    def admitted(self, token: str, job_id: str) -> Job | None:
        """The job, when all that lets this token in is at hand; None is no refusal: `authorise` decides."""
        claims = self._verdicts.get(token)
        job = self._jobs.at_hand(job_id)
        if claims is None or claims.job_id != job_id or job is None or not may_call(job, claims.attempt):
            return None
        late_s = self._clock.now().timestamp() - claims.expires_at
        return job if late_s <= LEEWAY_S else None

    async def authorise(self, token: str, job_id: str, *, ended: bool = False) -> tuple[WorkerClaims, Job]:
        """The claims of a token that may act for this job now, and the job.

        Args:
            token: as the worker sent it.
            job_id: from the request's path.
            ended: let the last attempt of an ended job in too: it may repeat its last word.

        Raises:
            Unauthorised: the token is invalid, expired, or its job or attempt is over.
            JobMismatch: it is another job's.
        """
        claims = self._verify(token)
        return claims, await self._live(claims, job_id, ended=ended)

    async def renew(self, token: str, job_id: str) -> IssuedToken:
        """A fresh token; one that expired lately will do while its job is active.

        Raises:
            Unauthorised, JobMismatch: as `authorise`.
            JobNotActive: the job has ended.
        """
        claims = self._verify(token, expired_for_s=self._renew_grace_s)
        job = await self._live(claims, job_id)
        if not job.state.active:
            raise JobNotActive(f"the job is {job.state}; its worker stops")
        return self.issue(job, claims.attempt)

    async def _live(self, claims: WorkerClaims, job_id: str, *, ended: bool = False) -> Job:
        if claims.job_id != job_id:
            raise JobMismatch("this token belongs to another job")
        job = await self._jobs.get(claims.job_id)
        last_word = ended and job is not None and job.state.terminal and job.attempt == claims.attempt
        if job is None or not (may_call(job, claims.attempt) or last_word):
            raise Unauthorised("this token's job or attempt is over", "token_revoked")
        return job

    def _verify(self, token: str, *, expired_for_s: float = 0.0) -> WorkerClaims:
        claims = self._verdicts.get(token)
        if claims is None:
            claims = self._decode(token)
            self._verdicts[token] = claims
            if len(self._verdicts) > _MAX_CACHED:
                self._verdicts.popitem(last=False)
        late_s = self._clock.now().timestamp() - claims.expires_at
        if late_s > max(expired_for_s, LEEWAY_S):
            raise Unauthorised("the token has expired; renew it before its end", "token_expired")
        return claims

    def _decode(self, token: str) -> WorkerClaims:
        claims = self._signer.read(token, WORKER_AUDIENCE, ("att",))
        attempt, agent, network = claims["att"], claims.get("agent", ""), claims.get("network", "")
        if not (isinstance(agent, str) and isinstance(network, str) and type(attempt) is int):
            raise invalid_token()
        return WorkerClaims(claims["sub"], attempt, agent, network, claims["jti"], float(claims["exp"]))
