"""What is remembered of every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple


class SchemaVerdict(StrEnum):
    """What a call's arguments were against the advertised schema."""

    FITS = "fits"
    VIOLATES = "violates"
    UNCHECKED = "unchecked"
    """The call ended before: no such tool, or one that its caller does not see."""


class AuditRecord(NamedTuple):
    """One call and its verdict. A tuple, as one is made of every call.

    Attributes:
        at: when the call came.
        params: the arguments, sensitive ones masked and known secrets redacted; of large ones an outline.
        verdict: `ok`, `error` when the tool says that it failed, else the problem's code.
        schema_verdict: a `SchemaVerdict`; whatever came of the call after it.
        violations: what broke the schema, `{pointer, rule, message, expected, got}` each, as it was told.
        adjustments: what was changed of the arguments, `{pointer, kind, was, became}` each.
        output_bytes: of the result as shown.
    """

    at: datetime
    job_id: str
    agent: str
    network: str
    tool_name: str
    source: str
    call_id: str
    params: dict[str, Any]
    verdict: str
    schema_verdict: str
    violations: tuple[Mapping[str, str | None], ...]
    adjustments: tuple[Mapping[str, str], ...]
    duration_ms: int
    output_bytes: int

    @property
    def rules(self) -> tuple[str, ...]:
        """The schema rules that the arguments broke, in the order told."""
        return tuple(str(one["rule"]) for one in self.violations)


AuditSink = Callable[[AuditRecord], None]
