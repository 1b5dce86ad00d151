"""What every `AuditStore` does (PD-6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.db.audit import SqlAuditStore
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.audit import AuditRow, AuditStore, ToolUse
from tests.support.jobs import START, make_job


@pytest.fixture
def audit(database: Database) -> AuditStore:
    return SqlAuditStore(database)


def make_row(call_id: str = "call-1", **changes: Any) -> AuditRow:
    given: dict[str, Any] = {
        "at": START,
        "job_id": "job-1",
        "agent": "coder",
        "network": "local",
        "tool_name": "search",
        "source": "mcp:web",
        "call_id": call_id,
        "params": {"q": ["\x00", 1, None, {"z": 1, "a": 2}]},
        "verdict": "ok",
        "rules": (),
        "duration_ms": 12,
        "output_bytes": 2**40,
    }
    return AuditRow(**(given | changes))


async def test_rows_come_back_as_they_were_stored(audit: AuditStore):
    rows = [make_row(), make_row("call-2", verdict="invalid_params", rules=("required", "type"))]
    await audit.append(rows)
    assert await audit.read() == rows


@pytest.mark.parametrize("text", ["a\x00b", "\udfff", "\x1a", "x" * 100_000])
async def test_a_call_that_names_an_impossible_tool_has_its_row(audit: AuditStore, text: str):
    rows = [make_row(text, tool_name=text, agent=text, params={text: text}, verdict="tool_not_found")]
    await audit.append(rows)
    assert await audit.read() == rows


async def test_the_newest_rows_are_read_oldest_first(audit: AuditStore):
    await audit.append([make_row(f"call-{n}") for n in range(3)])
    await audit.append([make_row(f"call-{n}") for n in range(3, 6)])
    assert [row.call_id for row in await audit.read(limit=4)] == ["call-2", "call-3", "call-4", "call-5"]


async def test_rows_of_one_job_are_read(audit: AuditStore):
    await audit.append([make_row("a"), make_row("b", job_id="job-2"), make_row("c")])
    assert [row.call_id for row in await audit.read(job_id="job-1")] == ["a", "c"]
    assert await audit.read(job_id="nobody") == []


async def test_rows_are_stored_together_or_not_at_all(audit: AuditStore):
    with pytest.raises(ValueError, match="timezone"):
        await audit.append([make_row("a"), make_row("b", at=START.replace(tzinfo=None))])
    assert await audit.read() == []
    await audit.append([])


async def test_tools_are_counted_by_calls_and_by_first_calls_of_a_job(audit: AuditStore):
    refused = "invalid_params"
    await audit.append(
        [
            make_row("1", job_id="a", verdict=refused),
            make_row("2", job_id="a", verdict="ok"),
            make_row("3", job_id="a", verdict="error"),
            make_row("4", job_id="b", verdict="error"),
            make_row("5", job_id="b", verdict=refused),
            make_row("6", job_id="c", verdict="rate_limited"),
            make_row("7", job_id="c", tool_name="build", verdict=refused),
        ]
    )
    assert await audit.tool_use() == [
        ToolUse("build", calls=1, accepted=0, first_calls=1, first_calls_accepted=0),
        ToolUse("search", calls=6, accepted=4, first_calls=3, first_calls_accepted=2),
    ]


async def test_the_first_call_is_the_earliest_whatever_order_rows_came_in(audit: AuditStore):
    later, earlier = START + timedelta(seconds=1), START
    await audit.append([make_row("2", at=later, verdict="invalid_params")])
    await audit.append([make_row("1", at=earlier, verdict="ok")])
    assert await audit.tool_use() == [ToolUse("search", 2, 1, first_calls=1, first_calls_accepted=1)]


async def test_no_rows_make_no_tools(audit: AuditStore):
    assert await audit.tool_use() == []


async def test_rows_go_with_their_job(audit: AuditStore, database: Database):
    jobs = SqlJobStore(database)
    await jobs.add(make_job("job-1"))
    await audit.append([make_row("a"), make_row("b", job_id="job-2")])
    await jobs.delete(JobId("job-1"))
    assert [row.call_id for row in await audit.read()] == ["b"]
