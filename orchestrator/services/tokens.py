"""Job tokens: issued, verified, renewed, revoked with their job.

EdDSA by pyjwt. The algorithm is the key's, never the token's own claim; a verdict is cached by the token
and ends with its `exp`. Whether the job still lets its worker in is asked at every call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from orchestrator.domain.jobs import Job
from orchestrator.errors import JobMismatch, JobNotActive, Unauthorised
from orchestrator.ports.ids import Ids
from orchestrator.ports.signing_keys import SigningKey, SigningKeyStore
from orchestrator.services.active_jobs import ActiveJobs, may_call
from tool_registry.clock import Clock

ISSUER = "portside"
WORKER_AUDIENCE = "portside-worker"
LEEWAY_S = 30
_ALGORITHM = "EdDSA"
_REQUIRED = ("iss", "aud", "sub", "jti", "iat", "nbf", "exp", "att")
_MAX_CACHED = 10_000
_MAX_TOKEN_CHARS = 8_192


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
        lifetime_s: of a token; the worker renews at half of it.
        renew_grace_s: how long after `exp` a live job's token may still be renewed.
    """

    def __init__(
        self,
        keys: SigningKeyStore,
        jobs: ActiveJobs,
        clock: Clock,
        ids: Ids,
        *,
        lifetime_s: float = 3600.0,
        renew_grace_s: float = 600.0,
    ) -> None:
        self._keys = keys
        self._jobs = jobs
        self._clock = clock
        self._ids = ids
        self._lifetime_s = lifetime_s
        self._renew_grace_s = renew_grace_s
        self._signing: tuple[str, Ed25519PrivateKey] | None = None
        self._verifying: dict[str, Ed25519PublicKey] = {}
        self._verdicts: OrderedDict[str, WorkerClaims] = OrderedDict()

    async def load_keys(self) -> None:
        """Read the signing keys; make the first one when there is none."""
        keys = await self._keys.list()
        if not any(key.retired_at is None for key in keys):
            keys = [await self._make_key(), *keys]
        private = {key.kid: _private(key) for key in keys}
        self._verifying = {kid: key.public_key() for kid, key in private.items()}
        newest = next(key.kid for key in keys if key.retired_at is None)
        self._signing = (newest, private[newest])
        self._verdicts.clear()

    async def rotate(self) -> str:
        """Sign with a new key from now on; older keys verify until their last token expired.

        Returns:
            The new key's id.
        """
        now = self._clock.now()
        old = [key.kid for key in await self._keys.list() if key.retired_at is None]
        key = await self._make_key()
        for kid in old:
            await self._keys.retire(kid, now)
        await self.load_keys()
        return key.kid

    async def drop_expired_keys(self) -> None:
        """Forget retired keys that no live token can be signed with."""
        horizon = self._clock.now() - timedelta(seconds=self._lifetime_s + self._renew_grace_s + LEEWAY_S)
        for key in await self._keys.list():
            if key.retired_at is not None and key.retired_at < horizon:
                await self._keys.delete(key.kid)
        await self.load_keys()

    def issue(self, job: Job, attempt: int) -> IssuedToken:
        """A token for one attempt of a job."""
        kid, private = self._signing_key()
        now = self._clock.now()
        expires = now + timedelta(seconds=self._lifetime_s)
        claims = {
            "iss": ISSUER,
            "aud": WORKER_AUDIENCE,
            "sub": job.id,
            "jti": self._ids.new(),
            "iat": now,
            "nbf": now,
            "exp": expires,
            "att": attempt,
            "scope": "worker",
            "agent": job.spec.agent,
            "network": job.spec.network,
        }
        return IssuedToken(jwt.encode(claims, private, algorithm=_ALGORITHM, headers={"kid": kid}), expires)

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
        if len(token) > _MAX_TOKEN_CHARS:
            raise _invalid()
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._verifying.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise _invalid()
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=WORKER_AUDIENCE,
                issuer=ISSUER,
                options={
                    "require": list(_REQUIRED),
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            raise _invalid() from None
        return self._checked(claims)

    def _checked(self, claims: Mapping[str, Any]) -> WorkerClaims:
        """The claims, if their types and times are right; the library checks neither strictly."""
        times = [claims[name] for name in ("iat", "nbf", "exp")]
        if any(isinstance(one, bool) or not isinstance(one, int) for one in times):
            raise _invalid()
        horizon = self._clock.now().timestamp() + LEEWAY_S
        if times[0] > horizon or times[1] > horizon or not 0 < times[2] < 2**40:
            raise _invalid()
        texts = [claims.get(name, "") for name in ("sub", "jti", "agent", "network")]
        attempt = claims["att"]
        if not all(isinstance(one, str) for one in texts) or type(attempt) is not int:
            raise _invalid()
        return WorkerClaims(texts[0], attempt, texts[2], texts[3], texts[1], float(times[2]))

    def _signing_key(self) -> tuple[str, Ed25519PrivateKey]:
        if self._signing is None:
            message = "load_keys() runs before the first token is issued"
            raise RuntimeError(message)
        return self._signing

    async def _make_key(self) -> SigningKey:
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        key = SigningKey(kid=self._ids.new(), private_pem=pem.decode(), created_at=self._clock.now())
        await self._keys.add(key)
        return key


def _invalid() -> Unauthorised:
    """One answer for every way in which a token can be wrong."""
    return Unauthorised("the token is not valid", "token_invalid")


def _private(key: SigningKey) -> Ed25519PrivateKey:
    loaded = serialization.load_pem_private_key(key.private_pem.encode(), password=None)
    if not isinstance(loaded, Ed25519PrivateKey):
        message = f"signing key {key.kid} is not an Ed25519 key"
        raise TypeError(message)
    return loaded
