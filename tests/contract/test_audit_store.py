"""What every `AuditStore` does (PD-6), and what it tells of first calls (PD-20)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event

from orchestrator.adapters.db.audit import MAX_PARAMS_CHARS, SqlAuditStore
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.adapters.db.tool_stats import tool_stats
from orchestrator.domain.jobs import JobId
from orchestrator.ports.audit import OPERATOR_JOB, AuditRow, AuditStore, Frequent, Spread, ToolStats
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
        "schema_verdict": "fits",
        "violations": (),
        "adjustments": (),
        "duration_ms": 12,
        "output_bytes": 2**40,
    }
    return AuditRow(**(given | changes))


def violation(pointer: str, rule: str) -> dict[str, str | None]:
    return {"pointer": pointer, "rule": rule, "message": f"{rule} it", "expected": "x", "got": None}


def refused(call_id: str, pointer: str = "/q", rule: str = "type", **changes: Any) -> AuditRow:
    given: dict[str, Any] = {
        "verdict": "invalid_params",
        "schema_verdict": "violates",
        "violations": (violation(pointer, rule),),
    }
    return make_row(call_id, **(given | changes))


async def test_rows_come_back_as_they_were_stored(audit: AuditStore):
    changed = {"pointer": "/lang", "kind": "dropped_null", "was": "null", "became": ""}
    rows = [make_row(), refused("call-2", "/q", "required"), make_row("call-3", adjustments=(changed,))]
    await audit.append(rows)
    assert await audit.read() == rows


@pytest.mark.parametrize("text", ["a\x00b", "\udfff", "\x1a", "x" * 100_000])
async def test_a_call_that_names_an_impossible_tool_has_its_row(audit: AuditStore, text: str):
    rows = [
        make_row(text, tool_name=text, agent=text, params={text[:99]: text[:99]}, verdict="tool_not_found")
    ]
    await audit.append(rows)
    assert await audit.read() == rows


async def test_arguments_are_kept_up_to_a_bound(audit: AuditStore):
    """PD-75: a caller fills no disk with what it is refused."""
    kept = {"text": "x" * (MAX_PARAMS_CHARS - 100)}
    await audit.append([make_row(params=kept), make_row("call-2", params={"text": "x" * MAX_PARAMS_CHARS})])
    whole, cut = await audit.read()
    assert whole.params == kept
    assert cut.params.keys() == {"portside", "beginning"}
    assert cut.params["portside"] == "cut: the arguments were 65,547 characters of JSON"
    assert cut.params["beginning"].startswith('{"text":"xxx')


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


async def stats_of(audit: AuditStore, name: str = "search") -> ToolStats:
    (found,) = await audit.stats([name])
    return found


async def test_first_calls_are_counted_once_a_job_and_tool(audit: AuditStore):
    missing = {"verdict": "tool_not_hosted", "schema_verdict": "unchecked"}
    await audit.append(
        [
            refused("1", job_id="a"),
            make_row("2", job_id="a"),
            make_row("3", job_id="a", verdict="error"),
            make_row("4", job_id="b", verdict="error"),
            refused("5", job_id="b"),
            make_row("6", job_id="c", verdict="rate_limited"),
            make_row("7", job_id="d", **missing),
            refused("8", job_id="c", tool_name="build"),
            refused("9", job_id=OPERATOR_JOB),
        ]
    )
    build, search = await audit.stats()
    assert (build.tool_name, build.calls, build.first_calls, build.first_call_rate) == ("build", 1, 1, 0.0)
    assert (search.calls, search.refused) == (7, 2)
    assert (search.first_calls, search.first_calls_fit, search.first_calls_unchecked) == (4, 2, 1)
    assert search.first_call_rate == 2 / 3
    assert search.verdicts == {
        "error": 2,
        "invalid_params": 2,
        "ok": 1,
        "rate_limited": 1,
        "tool_not_hosted": 1,
    }
    assert await audit.stats(["build"]) == [build]
    assert await audit.stats(["none"]) == []


async def test_the_first_call_is_the_earliest_whatever_order_rows_came_in(audit: AuditStore):
    later, earlier = START + timedelta(seconds=1), START
    await audit.append([refused("2", at=later)])
    await audit.append([make_row("1", at=earlier)])
    assert (await stats_of(audit)).first_call_rate == 1.0
    (first,) = await audit.first_calls("job-1")
    assert first.call_id == "1"


async def test_a_job_s_first_calls_come_in_their_order(audit: AuditStore):
    await audit.append(
        [
            make_row("1", tool_name="b"),
            make_row("2", tool_name="a"),
            make_row("3", tool_name="b"),
            make_row("4", job_id="job-2"),
        ]
    )
    assert [row.call_id for row in await audit.first_calls("job-1")] == ["1", "2"]
    assert await audit.first_calls("nobody") == []


async def test_retries_are_the_refusals_before_the_first_call_that_fits(audit: AuditStore):
    await audit.append(
        [
            make_row("1", job_id="at-once"),
            refused("2", job_id="at-once"),
            refused("3", job_id="third"),
            refused("4", job_id="third"),
            make_row("5", job_id="third", verdict="error"),
            refused("6", job_id="never"),
        ]
    )
    found = await stats_of(audit)
    assert (found.retries_mean, found.retries_largest, found.never_fitted) == (1.0, 2, 1)


async def test_the_most_frequent_violation_comes_first_with_its_place(audit: AuditStore):
    twice = (violation("/items/0/n", "type"), violation("", "required"))
    await audit.append([refused("1", violations=twice), refused("2", "/items/12/n"), refused("3", "/2/x")])
    assert (await stats_of(audit)).violations == (
        Frequent("/items/*/n", "type", 2, "type it"),
        Frequent("", "required", 1, "required it"),
        Frequent("/*/x", "type", 1, "type it"),
    )


async def test_dropped_nulls_and_coercions_are_counted(audit: AuditStore):
    null = {"pointer": "/lang", "kind": "dropped_null", "was": "null", "became": ""}
    text = {"pointer": "/n", "kind": "coerced", "was": "string", "became": "integer"}
    await audit.append([make_row("1", adjustments=(null, text)), make_row("2", adjustments=(null,))])
    assert (await stats_of(audit)).adjustments == (
        Frequent("/lang", "null dropped", 2),
        Frequent("/n", "string to integer", 1),
    )


async def test_latency_and_sizes_are_of_calls_that_ran(audit: AuditStore):
    await audit.append(
        [make_row(f"{n}", duration_ms=n, output_bytes=n * 10) for n in range(100, 0, -1)]
        + [refused("no", duration_ms=10**6, output_bytes=0)]
    )
    found = await stats_of(audit)
    assert (found.latency_ms, found.output_bytes) == (Spread(50, 95, 100), Spread(500, 950, 1000))
    await audit.append([refused("1", tool_name="other")])
    assert (await stats_of(audit, "other")).latency_ms == Spread()


async def test_the_calls_of_one_tool_are_found_without_reading_all(sqlite_url: str):
    database = await Database.open(sqlite_url)
    await SqlAuditStore(database).append([make_row()])

    def plans(connection: Connection) -> list[str]:
        asked: list[tuple[str, Any]] = []

        def noted(_conn: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
            asked.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", noted)
        tool_stats(connection, ["search"])
        event.remove(connection, "before_cursor_execute", noted)
        return [
            str(step)
            for statement, parameters in asked
            for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]

    steps = [step for step in await database.read(plans) if " audit" in step]
    await database.close()
    assert steps
    assert [step for step in steps if "(tool_name=?" not in step] == []


async def test_no_rows_make_no_tools(audit: AuditStore):
    assert await audit.stats() == []


async def test_rows_go_with_their_job(audit: AuditStore, database: Database):
    jobs = SqlJobStore(database)
    await jobs.add(make_job("job-1"))
    await audit.append([make_row("a"), make_row("b", job_id="job-2")])
    await jobs.delete(JobId("job-1"))
    assert [row.call_id for row in await audit.read()] == ["b"]
