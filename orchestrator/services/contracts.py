"""The first-call contract of one job: what its model was shown, and what each tool's first call was worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.domain.jobs import JobId
from orchestrator.ports.audit import AuditRow, AuditStore
from orchestrator.ports.events import StoredEvent
from orchestrator.services.audit_log import AuditLog
from orchestrator.services.timeline import Timeline
from tool_registry.audit import SchemaVerdict

_VERDICTS = {
    "invalid_params": SchemaVerdict.VIOLATES,
    "tool_not_found": SchemaVerdict.UNCHECKED,
    "tool_not_hosted": SchemaVerdict.UNCHECKED,
}


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A job's first call of a tool.

    Attributes:
        verdict: as in the audit.
        errors: how the arguments broke the schema, `{pointer, rule, message, expected, got}` each.
        adjustments: what was changed of them, `{pointer, kind, was, became}` each.
    """

    at: datetime
    tool_name: str
    source: str
    call_id: str
    verdict: str
    schema_verdict: str
    errors: tuple[Mapping[str, Any], ...]
    adjustments: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class JobContract:
    """What is known of one job.

    Attributes:
        catalog_hash: of the definitions that the catalogue advertised; None before the first request.
        request_hash: of the same tools' definitions in the first request to the model.
        tools: how many were advertised.
    """

    catalog_hash: str | None
    request_hash: str | None
    tools: int
    first_calls: tuple[FirstCall, ...]

    @property
    def identical(self) -> bool | None:
        """Whether the model was shown the owners' definitions byte for byte; None when it was shown none."""
        return None if self.catalog_hash is None else self.catalog_hash == self.request_hash


class Contracts:
    """Puts a job's contract together from its timeline and from the orchestrator's own records.

    The orchestrator's record of a call wins; the timeline knows the calls of the container's own tools.
    """

    def __init__(self, audit: AuditStore, log: AuditLog, timeline: Timeline) -> None:
        self._audit = audit
        self._log = log
        self._timeline = timeline

    async def of(self, job_id: JobId) -> JobContract:
        """The contract as far as the job has come."""
        await self._log.flush()
        first = {row.tool_name: _recorded(row) for row in await self._audit.first_calls(job_id)}
        shown: Mapping[str, Any] = {}
        sources: dict[str, str] = {}
        async for event in self._timeline.all(job_id):
            if event.type == "contract":
                shown = shown or event.data
            elif event.type == "tool_use":
                sources[event.data["call_id"]] = event.data["source"]
            elif event.type == "tool_result" and event.data["first_call"]:
                told = _told(event, sources.get(event.data["call_id"], ""))
                first.setdefault(told.tool_name, told)
        return JobContract(
            shown.get("catalog_hash"),
            shown.get("request_hash"),
            shown.get("tools", 0),
            tuple(sorted(first.values(), key=lambda one: (one.at, one.tool_name))),
        )


def _recorded(row: AuditRow) -> FirstCall:
    return FirstCall(
        row.at,
        row.tool_name,
        row.source,
        row.call_id,
        row.verdict,
        row.schema_verdict,
        row.violations,
        row.adjustments,
    )


def _told(event: StoredEvent, source: str) -> FirstCall:
    data = event.data
    return FirstCall(
        event.at,
        data["tool_name"],
        source,
        data["call_id"],
        data["verdict"],
        _VERDICTS.get(data["verdict"], SchemaVerdict.FITS),
        tuple(data["errors"]),
        tuple(data.get("adjustments", ())),
    )
