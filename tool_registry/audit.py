"""What is remembered of every call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple


class AuditRecord(NamedTuple):
    """One call and its verdict. A tuple, as one is made of every call.

    Attributes:
        params: the arguments, sensitive ones masked and known secrets redacted.
        verdict: `ok`, `error` when the tool says that it failed, else the problem's code.
        rules: the schema rules that the arguments broke.
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


AuditSink = Callable[[AuditRecord], None]
