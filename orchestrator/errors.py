"""What a caller of the service may be told, beside what the registry says.

PortsideError (tool_registry.errors)
├── BadRequest           the request can't be understood; `invalid_request`
├── NotFound             no such thing, or it is another's
├── Conflict             it can't be done in the present state
│   ├── JobNotActive     the job ended; its worker stops
│   ├── ConsentMissing   a WASM tool asks for something that nobody has agreed to
│   ├── ChangesMissing   a hosted job completes only after its changes were uploaded
│   └── IdempotencyConflict  one key, two different calls
├── TooManyOpen          a caller holds as much as one may; some has to end first
├── TooLarge             a bound was passed; the message names it
├── BudgetExhausted      the job may send its model nothing more
├── Unauthorised         the token is missing, invalid, expired or revoked
├── Forbidden            it comes from where nothing is taken from
├── JobMismatch          a valid token of another job
├── ModelFailed          the model's provider failed after its retries
├── EngineDown           no container engine answers
├── EgressRefused        a job may not have this connection; `cause` says which rule
├── EgressFailed         it may, and the connection can't be made
├── EgressUnavailable    what carries connections of jobs is missing or does not answer
├── HomeTaken            another orchestrator looks after this state directory
└── HomeUnusable         its files are damaged, or those of another one
"""

from __future__ import annotations

from tool_registry.errors import PortsideError


class BadRequest(PortsideError):
    """The request can't be understood."""

    code = "invalid_request"


class NotFound(PortsideError):
    """There is no such thing for this caller."""

    code = "not_found"


class Conflict(PortsideError):
    """It can't be done in the present state."""

    code = "conflict"


class JobNotActive(Conflict):
    """The job ended, or never began."""

    code = "job_not_active"


class ConsentMissing(Conflict):
    """A WASM tool asks for something that nobody has agreed to; `asks` has a line for each thing."""

    code = "consent_missing"

    def __init__(self, message: str, *, asks: tuple[str, ...]) -> None:
        super().__init__(message)
        self.asks = asks


class ChangesMissing(Conflict):
    """The job's changes have to be uploaded first."""

    code = "changes_missing"


class IdempotencyConflict(Conflict):
    """The key was used for another call."""

    code = "idempotency_conflict"


class TooManyOpen(PortsideError):
    """The caller holds as many things open as one may."""

    code = "rate_limited"
    retryable = True


class TooLarge(PortsideError):
    """A bound was passed."""

    code = "payload_too_large"


class BudgetExhausted(PortsideError):
    """The job has used up its tokens or iterations."""

    code = "budget_exhausted"


class Unauthorised(PortsideError):
    """The token does not let anybody in."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Forbidden(PortsideError):
    """The request comes from where nothing is taken from."""

    code = "forbidden"


class JobMismatch(PortsideError):
    """A valid token, but of another job."""

    code = "job_mismatch"


class HomeTaken(PortsideError):
    """Another orchestrator looks after this state directory."""

    code = "home_taken"


class HomeUnusable(PortsideError):
    """A state directory's files are damaged, or another orchestrator has the same id."""

    code = "home_unusable"


class ModelFailed(PortsideError):
    """The model's provider failed after its retries."""

    code = "model_error"

    def __init__(
        self,
        message: str,
        *,
        status: int = 502,
        retryable: bool = False,
        retry_after_s: float | None = None,
        cause: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.cause = cause


class EgressRefused(PortsideError):
    """A job may not have a connection."""

    code = "egress_refused"

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class EgressFailed(PortsideError):
    """A connection that a job may have can't be made."""

    code = "egress_failed"

    def __init__(self, message: str, cause: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.cause = cause
        self.retryable = retryable


class EgressUnavailable(PortsideError):
    """What carries the connections of jobs is missing here, or does not answer."""

    code = "egress_unavailable"
