"""The errors a caller of the registry may see.

    PortsideError                 anything a caller can act on; carries `code` and `retryable`
    ├── RegistrationError         a tool can't be registered; its neighbours stay
    │   ├── ProtectedName         a reserved name was taken by somebody who does not own it
    │   ├── DuplicateTool         one owner offers the same name twice
    │   ├── IllegalName           no legal name can be made of it
    │   └── InvalidSchema         the parameters are not a JSON Schema we can hold a call to
    └── CallError                 a call gave no ToolOutput; becomes one problem+json
        ├── ToolNotFound          no such tool
        ├── ToolNotHosted         it exists and is hidden from this caller; `reason` says why
        ├── InvalidParams         the arguments break the advertised schema; `violations` lists how
        ├── ApprovalRequired      these arguments need a person's approval
        ├── RateLimited           too many calls; `retry_after_s` says when
        ├── ToolTimeout           the deadline passed and the tool was cancelled
        ├── ToolFailed            the tool's server or guest broke; `cause` says how
        ├── ToolUnavailable       its server is down and being reconnected
        └── RemoteProblem         any of the above, or another, as the orchestrator reported it

A tool that ran and *says* it failed is no error: it is a `ToolOutput` with `is_error` set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Outcome(StrEnum):
    """What is known about a call's effect when it gave no output."""

    NOT_RUN = "not_run"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which arguments break a schema.

    Attributes:
        pointer: JSON pointer into the arguments; "" is the whole object.
        rule: the schema keyword that failed, such as `required` or `type`.
        message: one sentence a model can act on.
        expected: what the schema allows there, when that can be said shortly.
        got: what came, by type and size; a value only when it is short and not sensitive.
    """

    pointer: str
    rule: str
    message: str
    expected: str | None = None
    got: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """Every field by name."""
        return {
            "pointer": self.pointer,
            "rule": self.rule,
            "message": self.message,
            "expected": self.expected,
            "got": self.got,
        }


class PortsideError(Exception):
    """An error its caller can act on.

    Attributes:
        code: stable machine-readable name.
        retryable: the same request may succeed later, unchanged.
    """

    code: str = "internal"
    retryable: bool = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RegistrationError(PortsideError):
    """A tool can't be registered."""

    code = "registration_refused"


class ProtectedName(RegistrationError):
    """A reserved tool name was asked for by an owner that does not hold it."""

    code = "protected_name"


class DuplicateTool(RegistrationError):
    """One owner offers two tools under one name."""

    code = "duplicate_tool"


class IllegalName(RegistrationError):
    """No legal tool name can be made of what the owner gave."""

    code = "illegal_name"


class InvalidSchema(RegistrationError):
    """The parameters are not a JSON Schema that a call can be held to."""

    code = "invalid_schema"


class CallError(PortsideError):
    """A tool call that gave no output."""

    code = "tool_failed"
    default_outcome: ClassVar[Outcome] = Outcome.NOT_RUN

    def __init__(
        self,
        message: str,
        *,
        outcome: Outcome | None = None,
        hint: str | None = None,
        retry_after_s: float | None = None,
        violations: tuple[Violation, ...] = (),
        cause: str | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome or self.default_outcome
        self.hint = hint
        self.retry_after_s = retry_after_s
        self.violations = violations
        self.cause = cause


class ToolNotFound(CallError):
    """There is no tool of that name."""

    code = "tool_not_found"


class ToolNotHosted(CallError):
    """The tool exists and is hidden from this caller."""

    code = "tool_not_hosted"

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class InvalidParams(CallError):
    """The arguments break the tool's advertised schema."""

    code = "invalid_params"


class ApprovalRequired(CallError):
    """These arguments need a person's approval."""

    code = "approval_required"


class RateLimited(CallError):
    """Too many calls of this tool by this job."""

    code = "rate_limited"
    retryable = True


class ToolTimeout(CallError):
    """The tool's deadline passed; it was cancelled."""

    code = "tool_timeout"
    default_outcome = Outcome.UNKNOWN


class ToolFailed(CallError):
    """The tool's server or guest broke; `cause` names the kind of break."""

    code = "tool_failed"
    default_outcome = Outcome.FAILED


class ToolUnavailable(CallError):
    """The tool's server is down and being reconnected; the call did not run."""

    code = "tool_unavailable"
    retryable = True


class RemoteProblem(CallError):
    """A problem another process reported, with its own code."""

    def __init__(self, message: str, *, code: str, retryable: bool, **fields: object) -> None:
        super().__init__(message, **fields)  # type: ignore[arg-type]
        self.code = code
        self.retryable = retryable
