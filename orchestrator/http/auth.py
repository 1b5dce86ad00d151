"""Who is calling: a worker by its token and socket, an operator by the operator token."""

from __future__ import annotations

import hmac

from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from orchestrator.domain.jobs import Job
from orchestrator.errors import JobMismatch, Unauthorised
from orchestrator.http.gated import Gate
from orchestrator.services.tokens import TokenService

SOCKET_JOB = "portside.job"
_CALLER = "portside.caller"


def bearer_token(scope: Scope) -> str:
    """The token of the one `Authorization: Bearer` header.

    Raises:
        Unauthorised: there is none, it is empty, or there are several.
    """
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    if not values:
        raise Unauthorised("send the token as 'Authorization: Bearer ...'", "token_missing")
    scheme, _, token = values[0].decode("latin-1").partition(" ")
    token = token.strip()
    if len(values) > 1 or scheme.lower() != "bearer" or not token:
        raise Unauthorised("the token is not valid", "token_invalid")
    return token


def check_socket(scope: Scope, job_id: str) -> None:
    """A job's own socket leads to that job only.

    Raises:
        JobMismatch: it belongs to another.
    """
    of_socket = scope.get(SOCKET_JOB)
    if of_socket is not None and of_socket != job_id:
        raise JobMismatch("this socket belongs to another job")


async def worker_job(scope: Scope, job_id: str, tokens: TokenService, *, ended: bool = False) -> Job:
    """The job that the caller is the worker of.

    The token proves the job; on a job's own socket it must be that job's.

    Raises:
        Unauthorised, JobMismatch: it is not.
    """
    token = bearer_token(scope)
    check_socket(scope, job_id)
    _, job = await tokens.authorise(token, job_id, ended=ended)
    return job


def worker_gate(tokens: TokenService, *, ended: bool = False) -> Gate:
    """Lets the worker of the job in the path in; its job is `caller_job` from then on."""

    async def admit(request: Request) -> None:
        job_id = request.path_params["job_id"]
        request.scope[_CALLER] = await worker_job(request.scope, job_id, tokens, ended=ended)

    return admit


async def caller_job(request: Request) -> Job:
    """The job whose worker was let in (a FastAPI dependency)."""
    return request.scope[_CALLER]


class OperatorGate:
    """Lets operators in. A job's socket never leads here, whatever token comes over it."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def __call__(self, connection: HTTPConnection) -> None:
        """Check one request.

        Raises:
            Unauthorised: it carries no operator token.
        """
        token = bearer_token(connection.scope)
        if SOCKET_JOB in connection.scope or not hmac.compare_digest(token.encode(), self._token):
            raise Unauthorised("the token is not valid", "token_invalid")
