"""What is remembered of every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One call and its verdict.

    Attributes:
        params: the arguments, sensitive ones masked and known secrets redacted.
        verdict: `ok`, `error` when the tool says that it failed, else the problem's code.
        rules: the schema rules that the arguments broke.
        read_only: of the tool; such a record may be written later than the answer goes out.
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
    rules: tuple[str, ...]
    duration_ms: int
    output_bytes: int
    read_only: bool


AuditSink = Callable[[AuditRecord], None]
