"""A provider's errors, as the SDKs raise them, turned into plain failures and model errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from orchestrator.domain.model_failures import ProviderFailure, Verdict
from orchestrator.domain.retry_waits import asked_wait_s
from orchestrator.ports.models import ModelError

# Whatever else is raised is a fault of ours and passes.
SDK_ERRORS = (ModelAPIError, UnexpectedModelBehavior, UserError, TimeoutError)

_MESSAGE_CHARS = 500
_TAGS = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def failure_of(error: Exception, now: datetime) -> ProviderFailure:
    """Read what an error says: its status, codes, words, and how long it asks to wait."""
    match error:
        case ModelHTTPError():
            said = _said(error.body)
            code = said.get("code")
            told = (
                int(code) if isinstance(code, int | str) and re.fullmatch("[45][0-9]{2}", str(code)) else None
            )
            return ProviderFailure(
                kind="answer",
                message=_message(said, error.body) or f"HTTP status {error.status_code}",
                status=told or error.status_code,
                codes=_codes(said),
                asked_wait_s=asked_wait_s(error.headers or {}, now),
            )
        case TimeoutError() | ModelTimeoutError():
            return ProviderFailure(kind="timeout", message="the provider fell silent")
        case ModelConnectionError():
            return ProviderFailure(kind="unreachable", message=f"the connection failed: {_deepest(error)}")
        case ModelAPIError():
            said = _said(error.body)
            return ProviderFailure(
                kind="answer", message=_message(said, None) or error.message, codes=_codes(said)
            )
        case UserError():
            return ProviderFailure(kind="request", message=str(error))
        case _:
            return ProviderFailure(kind="incomplete", message=str(error))


def model_error(failure: ProviderFailure, verdict: Verdict, secret: str, *, tries: int) -> ModelError:
    """The error of a call that is given up; never retryable, for the retries are spent."""
    status = 429 if failure.status == 429 else 504 if verdict.cause == "timeout" else 502
    after = f" (after {tries} tries)" if tries > 1 else ""
    return ModelError(
        f"the model provider failed: {bounded(failure.said, secret)}{after}",
        status=status,
        retry_after_s=failure.asked_wait_s,
        cause=verdict.cause,
        fatal=verdict.fatal,
    )


def bounded(text: str, secret: str) -> str:
    """A provider's words on one line, without markup and without the key, cut at 500 characters."""
    if secret:
        text = text.replace(secret, "[redacted:model key]")
    line = " ".join(_TAGS.sub(" ", text).split())
    return line if len(line) <= _MESSAGE_CHARS else f"{line[:_MESSAGE_CHARS]}..."


def _deepest(error: BaseException) -> str:
    """The error underneath: the SDKs say no more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _said(body: object) -> Mapping[str, Any]:
    """The object that tells the error: the SDKs hand over the body or its `error` member."""
    if not isinstance(body, dict):
        return {}
    whole = cast("dict[str, Any]", body)
    inner = whole.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else whole


def _codes(said: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(said[key]).lower() for key in ("code", "type") if said.get(key))


def _message(said: Mapping[str, Any], body: object) -> str:
    for key in ("message", "error", "detail"):
        if isinstance(said.get(key), str):
            return said[key]
    return body if isinstance(body, str) else ""
