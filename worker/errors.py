"""What ends a worker, beside the problems that the orchestrator reports.

PortsideError
├── RemoteProblem               (tool_registry.errors) as the orchestrator said it
├── OrchestratorUnreachable     it did not come back within the outage bound
├── NoAnswerInTime              it took the request and did not answer; the effect is unknown
├── AuthenticationExpired       the token ran out and can't be renewed
└── WorkspaceError
    ├── UnsafeArchive           the workspace holds what must not be unpacked
    └── ChangesFailed           git could not record what changed
"""

from __future__ import annotations

from tool_registry.errors import PortsideError, RemoteProblem

_JOB_OVER = frozenset({"job_not_active", "token_revoked", "job_mismatch", "token_invalid", "token_missing"})


class OrchestratorUnreachable(PortsideError):
    """Nobody answered on the socket for as long as the worker waits."""

    code = "orchestrator_unreachable"


class NoAnswerInTime(PortsideError):
    """The request was taken and not answered."""

    code = "no_answer"


class AuthenticationExpired(PortsideError):
    """The token expired and its renewal was refused."""

    code = "authentication_expired"


class WorkspaceError(PortsideError):
    """The workspace could not be unpacked or compared."""

    code = "workspace_error"


class UnsafeArchive(WorkspaceError):
    """The archive holds a member that must not be unpacked."""


class ChangesFailed(WorkspaceError):
    """The changes could not be recorded."""


def job_is_over(error: PortsideError) -> bool:
    """Whether the orchestrator no longer knows this worker's job as running."""
    if isinstance(error, AuthenticationExpired):
        return True
    return isinstance(error, RemoteProblem) and error.code in _JOB_OVER
