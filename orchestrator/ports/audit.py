"""Where every call's verdict is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tool_registry.audit import AuditRecord

AuditRow = AuditRecord  # what the registry says of a call is what is kept of it

OPERATOR_JOB = "operator"
"""What calls by hand have in place of a job's id; they say nothing about models."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Some amount over many calls; zeros when there were none."""

    median: int = 0
    p95: int = 0
    largest: int = 0


@dataclass(frozen=True, slots=True)
class Frequent:
    """Something that was counted: a broken rule, or a change of arguments, and where.

    Attributes:
        pointer: into the arguments.
        what: the schema's rule, or what was changed into what.
        message: the newest sentence that told it; "" for a change.
    """

    pointer: str
    what: str
    count: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class ToolStats:
    """How a tool fared with the models of many jobs; calls by hand are left out.

    Attributes:
        calls: all of them.
        verdicts: how many calls ended with each verdict.
        first_calls: jobs that called it at all.
        first_calls_fit: of those, whose first call fitted the schema.
        first_calls_unchecked: of those, whose first call ended before the schema was asked.
        refused: calls whose arguments broke the schema.
        violations: what broke it, the most frequent first; of the newest refusals, at most ten kinds.
        retries_mean: calls that were refused before the first that fitted, over jobs that got there.
        retries_largest: the most of them in one job.
        never_fitted: jobs of which no call fitted.
        adjustments: dropped nulls and coercions, as `violations`.
        latency_ms: of calls that ran.
        output_bytes: of calls that ran, as shown to the model.
    """

    tool_name: str
    calls: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict[str, int])
    first_calls: int = 0
    first_calls_fit: int = 0
    first_calls_unchecked: int = 0
    refused: int = 0
    violations: tuple[Frequent, ...] = ()
    retries_mean: float = 0.0
    retries_largest: int = 0
    never_fitted: int = 0
    adjustments: tuple[Frequent, ...] = ()
    latency_ms: Spread = Spread()
    output_bytes: Spread = Spread()

    @property
    def first_call_rate(self) -> float | None:
        """The part of checked first calls that fitted, 0 to 1; None when there were none."""
        checked = self.first_calls - self.first_calls_unchecked
        return self.first_calls_fit / checked if checked else None


class AuditStore(Protocol):
    """Audit rows, durable once `append` returned."""

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Store rows."""
        ...

    async def read(self, *, job_id: str | None = None, limit: int = 500) -> list[AuditRow]:
        """Rows, oldest first; the newest `limit` of them."""
        ...

    async def first_calls(self, job_id: str) -> list[AuditRow]:
        """The first call of each tool that a job called, in the order of the calls."""
        ...

    async def stats(self, names: Collection[str] = ()) -> list[ToolStats]:
        """Per tool, sorted by name; of these tools, or of all that were ever called."""
        ...
