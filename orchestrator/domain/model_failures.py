"""What a provider's failure means: ask again, make the request smaller, or give up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Cause = Literal[
    "context_overflow",
    "credentials",
    "incomplete",
    "overloaded",
    "quota",
    "refused",
    "timeout",
    "unreachable",
]

_OVERFLOW_CODES = {"context_length_exceeded", "request_too_large", "exceed_context_size_error"}
_OVERFLOW_TEXT = re.compile(
    r"maximum context length|prompt is too long|input is too long|exceed context limit"
    r"|exceeds? (the )?(available |model's )?context|context (window|length) (is |was )?exceeded"
    r"|context the overflows"
    r"|input token count .* exceeds|maximum prompt length|reduce the length of the (messages|prompt)"
    r"|request too large for|too large for model with",
    re.IGNORECASE,
)
_QUOTA_CODES = {
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "credit_balance_exhausted",
    "exceeded_current_quota_error",
}
_QUOTA_TEXT = re.compile(r"credit balance is too low|insufficient (balance|credits)", re.IGNORECASE)
_CREDENTIAL_CODES = {
    "authentication_error",
    "invalid_api_key",
    "permission_error",
    "not_found_error",
    "model_not_found",
}
_REFUSED_CODES = {"invalid_request_error", "invalid_request", "content_filter", "unsupported_value"}
_OVERLOAD_CODES = {
    "overloaded_error",
    "overloaded",
    "server_is_overloaded",
    "rate_limit_error",
    "rate_limit_exceeded",
}
_RETRIED_STATUSES = {408, 409, 425, 429}


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """One failed try, as the provider told it.

    Attributes:
        kind: how it failed: an error answer, no connection, silence, an answer that broke off, or a
            request that could not be sent at all.
        status: the HTTP status; None where there was none.
        codes: the error's `code` and `type`, in lower case.
        asked_wait_s: what the provider asked to wait.
    """

    kind: Literal["answer", "unreachable", "timeout", "incomplete", "request"]
    message: str
    status: int | None = None
    codes: frozenset[str] = frozenset()
    asked_wait_s: float | None = None

    @property
    def said(self) -> str:
        """The status, where there was one, and the message."""
        return f"{self.status}: {self.message}" if self.status else self.message


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a failure.

    Attributes:
        retry: the same request may succeed in a moment.
        fatal: no request to this model can succeed until an operator acts.
    """

    cause: Cause
    retry: bool = False
    fatal: bool = False


def judge(failure: ProviderFailure) -> Verdict:
    """Say what a failure means; the error's own words count more than its HTTP status."""
    match failure.kind:
        case "answer":
            return _by_words(failure) or _by_status(failure.status)
        case "request":
            return Verdict("refused")
        case kind:
            return Verdict(kind, retry=True)


def _by_words(failure: ProviderFailure) -> Verdict | None:
    if failure.codes & _OVERFLOW_CODES or _OVERFLOW_TEXT.search(failure.message):
        return Verdict("context_overflow")
    if failure.codes & _QUOTA_CODES or _QUOTA_TEXT.search(failure.message):
        return Verdict("quota", fatal=True)
    if failure.codes & _CREDENTIAL_CODES:
        return Verdict("credentials", fatal=True)
    if failure.codes & _OVERLOAD_CODES:
        return Verdict("overloaded", retry=True)
    if failure.codes & _REFUSED_CODES and failure.status not in _RETRIED_STATUSES | {413}:
        return Verdict("refused")
    return None


def _by_status(status: int | None) -> Verdict:
    match status:
        case 413:
            return Verdict("context_overflow")
        case 402:
            return Verdict("quota", fatal=True)
        case 401 | 403 | 404:
            return Verdict("credentials", fatal=True)
        case 429 | 503 | 529:
            return Verdict("overloaded", retry=True)
        case 408 | 504 | 524:
            return Verdict("timeout", retry=True)
        case None:
            return Verdict("incomplete", retry=True)
        case _:
            retry = status in _RETRIED_STATUSES or status >= 500
            return Verdict("unreachable" if retry else "refused", retry=retry)
