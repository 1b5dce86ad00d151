"""Where every call's verdict is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tool_registry.audit import AuditRecord

AuditRow = AuditRecord  # what the registry says of a call is what is kept of it


@dataclass(frozen=True, slots=True)
class ToolUse:
    """How a tool fared over many jobs.

    Attributes:
        first_calls: jobs that called it at all.
        first_calls_accepted: of those, whose first call fitted the schema.
    """

    tool_name: str
    calls: int
    accepted: int
    first_calls: int
    first_calls_accepted: int


class AuditStore(Protocol):
    """Audit rows, durable once `append` returned."""

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Store rows."""
        ...

    async def read(self, *, job_id: str | None = None, limit: int = 500) -> list[AuditRow]:
        """Rows, oldest first; the newest `limit` of them."""
        ...

    async def tool_use(self) -> list[ToolUse]:
        """Per tool: calls, and how many first calls of a job were accepted."""
        ...
