"""PD-1, PD-5, HW-5: calls over the wire, each run once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.jobs import JobId
from orchestrator.ports.executions import Execution, ExecutionState
from orchestrator.services.executions import WorkerCall
from tests.fakes.engine import FakeEngine
from tests.fakes.tools import OWNER
from tests.support.deadline import eventually, within
from tests.support.orchestrator import Wired, WorkerHands, http_over, problem, wired
from worker.clock import SystemClock


async def leave_running(
    orchestrator: Wired, worker: WorkerHands, key: str, tool: str, params: dict[str, Any]
) -> None:
    """A call that another process began and never ended."""
    call = WorkerCall(tool, params, key, b"")
    left = Execution(
        JobId(worker.job_id),
        key,
        call.fingerprint(),
        tool,
        "a dead runner",
        ExecutionState.RUNNING,
        SystemClock().now() - timedelta(minutes=1),
    )
    assert await orchestrator.stores.executions.begin(left) is None


async def test_repeats_that_come_together_run_the_tool_once(orchestrator: Wired) -> None:
    worker, tools = await orchestrator.worker(), orchestrator.tools
    for tool in ("held", "slow_read"):
        tools.gate.clear()
        tools.entered.clear()
        asked = [asyncio.create_task(worker.execute(tool, {"a": 1}, key=f"1:{tool}")) for _ in range(5)]
        await within(5.0, tools.entered.wait())
        tools.gate.set()
        answers = await asyncio.gather(*asked)
        assert {one.status_code for one in answers} == {200}
        assert len({one.content for one in answers}) == 1
        assert len(tools[tool].calls) == 1


async def test_a_repeat_after_the_end_is_answered_and_not_run(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    first = await worker.execute("count", {"a": 1, "b": 2}, key="1:a")
    again = await worker.execute("count", {"b": 2, "a": 1}, key="1:a")
    assert first.json()["output"] == again.json()["output"]
    assert first.json()["output"]["result"] == 1
    assert (await worker.execute("count", {"a": 1, "b": 2}, key="1:b")).json()["output"]["result"] == 2


async def test_calls_without_a_key_are_not_protected(orchestrator: Wired) -> None:
    """00-decisions 9: the source's request has none."""
    worker = await orchestrator.worker()
    results = [(await worker.execute("count")).json()["output"]["result"] for _ in range(2)]
    assert results == [1, 2]


@pytest.mark.parametrize("tool", ["count", "slow_read"])
async def test_one_key_for_two_calls_is_a_conflict(orchestrator: Wired, tool: str) -> None:
    worker = await orchestrator.worker()
    orchestrator.tools.gate.set()
    assert (await worker.execute(tool, {"a": 1}, key="1:a")).status_code == 200
    for other, params in ((tool, {"a": 2}), ("echo", {"text": "x"})):
        answer = await worker.execute(other, params, key="1:a")
        assert (answer.status_code, problem(answer)["code"]) == (409, "idempotency_conflict")
    assert len(orchestrator.tools[tool].calls) == 1


async def test_two_jobs_may_use_one_key(orchestrator: Wired) -> None:
    for worker in (await orchestrator.worker(), await orchestrator.worker()):
        assert (await worker.execute("count", key="1:a")).status_code == 200
    assert len(orchestrator.tools["count"].calls) == 2


async def test_a_stored_outcome_outlives_the_orchestrator_and_the_tool(home: Path) -> None:
    """A restart later the same call is answered as before, even when its tool is gone."""
    engine = FakeEngine()
    async with wired(home, engine=engine) as first:
        worker = await first.worker()
        answer = await worker.execute("count", {"a": 1}, key="1:a")
        broke = await worker.execute("breaks", key="1:b")
    async with wired(home, engine=engine) as second:
        async with http_over(socket=worker.socket, token=worker.token) as http:
            again = WorkerHands(http, worker.job_id, worker.token, worker.socket)
            assert (await again.execute("count", {"a": 1}, key="1:a")).json() == answer.json()
            assert problem(await again.execute("breaks", key="1:b")) == problem(broke)
            second.running.registry.remove_owner(OWNER)
            gone = await again.execute("count", {"a": 1}, key="1:a")
            assert gone.json()["output"] == answer.json()["output"]
        assert not second.tools["count"].calls


async def test_a_call_that_was_running_when_the_orchestrator_died_has_an_unknown_outcome(
    orchestrator: Wired,
) -> None:
    worker = await orchestrator.worker()
    await leave_running(orchestrator, worker, "1:a", "count", {"a": 1})
    for _ in range(2):
        answer = await worker.execute("count", {"a": 1}, key="1:a")
        body = problem(answer)
        assert (answer.status_code, body["code"]) == (502, "tool_failed")
        assert (body["outcome"], body["retryable"]) == ("unknown", False)
    other = await worker.execute("count", {"a": 2}, key="1:a")
    assert problem(other)["code"] == "idempotency_conflict"
    assert not orchestrator.tools["count"].calls


async def test_a_read_only_call_simply_runs_again_after_a_restart(home: Path) -> None:
    engine = FakeEngine()
    async with wired(home, engine=engine) as first:
        worker = await first.worker()
        assert (await worker.execute("echo", {"text": "a"}, key="1:a")).status_code == 200
    async with wired(home, engine=engine) as second:
        async with http_over(socket=worker.socket, token=worker.token) as http:
            again = WorkerHands(http, worker.job_id, worker.token, worker.socket)
            assert (await again.execute("echo", {"text": "a"}, key="1:a")).status_code == 200
        assert len(second.tools["echo"].calls) == 1


async def test_a_refusal_releases_the_key(orchestrator: Wired) -> None:
    """00-decisions 9: only calls that reached execution keep an outcome."""
    worker = await orchestrator.worker()
    assert (await worker.execute("echo", {"text": 5}, key="1:a")).status_code == 422
    assert (await worker.execute("echo", {"text": "5"}, key="1:a")).status_code == 200
    down = await worker.execute("down", key="1:b")
    assert (down.status_code, problem(down)["retryable"], down.headers["retry-after"]) == (503, True, "2")
    assert problem(down)["outcome"] == "not_run"
    assert await orchestrator.stores.executions.get(JobId(worker.job_id), "1:b") is None
    await worker.execute("down", key="1:b")
    assert len(orchestrator.tools["down"].calls) == 2


@pytest.mark.parametrize("key", ["", "k" * 257])
async def test_a_key_that_is_none_is_refused(orchestrator: Wired, key: str) -> None:
    worker = await orchestrator.worker()
    answer = await worker.post("tools/execute", {"tool_name": "count"}, headers={"Idempotency-Key": key})
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")


async def test_a_hidden_tool_is_refused_with_its_reason_and_an_unknown_one_with_a_hint(
    orchestrator: Wired,
) -> None:
    worker, tools = await orchestrator.worker(), orchestrator.tools
    for tool, reason in {
        "gated": "not_granted",
        "switched_off": "disabled",
        "broken_file": "failed_to_load",
        "for_others": "wrong_surface",
    }.items():
        answer = await worker.execute(tool, key=f"1:{tool}")
        body = problem(answer)
        assert (answer.status_code, body["code"], body["reason"]) == (403, "tool_not_hosted", reason), tool
        assert body["outcome"] == "not_run"
        assert not tools[tool].calls
    unknown = await worker.execute("eccho", {"text": "a"})
    assert (unknown.status_code, problem(unknown)["code"]) == (404, "tool_not_found")
    assert "'echo'" in problem(unknown)["detail"]


async def test_a_grant_opens_a_gated_tool_to_its_job_only(orchestrator: Wired) -> None:
    granted, other = await orchestrator.worker(grants=["gated"]), await orchestrator.worker()
    assert (await granted.execute("gated")).status_code == 200
    assert (await other.execute("gated")).status_code == 403
    seen = [(await one.get("tools/catalog")).json()["tools"] for one in (granted, other)]
    assert ["gated" in {tool["name"] for tool in tools} for tools in seen] == [True, False]


async def test_approval_by_arguments_is_asked_for_these_arguments_only(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    assert (await worker.execute("asks", {"force": False})).status_code == 200
    answer = await worker.execute("asks", {"force": True})
    assert (answer.status_code, problem(answer)["code"]) == (403, "approval_required")
    assert "--tool-grant asks" in problem(answer)["hint"]


async def test_arguments_that_break_the_schema_are_422_with_every_violation(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.execute("echo", {"times": 0, "extra": 1}, key="1:a")
    body = problem(answer)
    assert (answer.status_code, body["code"], body["outcome"]) == (422, "invalid_params", "not_run")
    assert {one["rule"] for one in body["errors"]} == {"required", "minimum", "additionalProperties"}
    assert body["catalog_version"].startswith("sha256:")
    assert not orchestrator.tools["echo"].calls


async def test_a_job_over_its_rate_waits_and_others_do_not(orchestrator: Wired) -> None:
    """The key is (job, tool)."""
    worker, other = await orchestrator.worker(), await orchestrator.worker()
    codes = [(await worker.execute("limited", key=f"1:{n}")).status_code for n in range(3)]
    assert codes == [200, 200, 429]
    answer = await worker.execute("limited", key="1:9")
    body = problem(answer)
    assert (body["code"], body["retryable"]) == ("rate_limited", True)
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert (await other.execute("limited")).status_code == 200


async def test_a_tool_over_its_time_is_504_and_cancelled(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    answer = await worker.execute("endless", key="1:a")
    body = problem(answer)
    assert (answer.status_code, body["code"], body["outcome"]) == (504, "tool_timeout", "unknown")
    assert orchestrator.tools["endless"].cancelled == 1
    again = await worker.execute("endless", key="1:a")
    assert problem(again) == body
    assert len(orchestrator.tools["endless"].calls) == 1


async def test_a_bug_in_a_tool_leaves_an_unknown_outcome_behind(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    assert (await worker.execute("has_bug", key="1:a")).status_code == 500
    again = await worker.execute("has_bug", key="1:a")
    assert (again.status_code, problem(again)["outcome"]) == (502, "unknown")
    assert len(orchestrator.tools["has_bug"].calls) == 1


async def test_known_secrets_are_taken_out_of_outputs_and_failures(orchestrator: Wired) -> None:
    """BR-121: by the value, the whole of it, also where it holds a colon and slashes."""
    worker = await orchestrator.worker()
    output = (await worker.execute("leaks")).json()["output"]
    assert output["result"] == {"environment": "KEY=[redacted:OPENAI_API_KEY]"}
    broke = await worker.execute("breaks", key="1:a")
    assert problem(broke)["code"] == "tool_failed"
    assert "[redacted:OPENAI_API_KEY]" in problem(broke)["detail"]
    stored = await orchestrator.stores.executions.get(JobId(worker.job_id), "1:a")
    assert orchestrator.tools.secret not in str(stored)


async def test_a_worker_that_hangs_up_does_not_end_its_call(orchestrator: Wired) -> None:
    """It asks again, and is answered what the first request did."""
    worker, tools = await orchestrator.worker(), orchestrator.tools
    asked = asyncio.create_task(worker.execute("held", {"a": 1}, key="1:a"))
    await within(5.0, tools.entered.wait())
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    again = asyncio.create_task(worker.execute("held", {"a": 1}, key="1:a"))
    tools.gate.set()
    assert (await again).json()["output"]["result"] == {"a": 1}
    assert (len(tools["held"].calls), tools["held"].cancelled) == (1, 0)


async def test_a_tool_is_told_who_calls_and_never_from_the_arguments(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(agent="reviewer", network="team")
    await worker.execute("count", {"job_id": "other", "agent": "root"}, key="3:x")
    (context,) = orchestrator.tools["count"].contexts
    job = await orchestrator.job(worker.job_id)
    assert (context.job_id, context.call_id, context.agent) == (worker.job_id, "3:x", "reviewer")
    assert (context.network, context.instance_id) == ("team", job.instance_id)


async def test_every_call_is_audited_and_a_job_s_first_call_of_a_tool_marked(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await worker.execute("echo", {"text": 5}, key="1:a")
    await worker.execute("echo", {"text": "private"}, key="1:b")
    await worker.execute("count", {}, key="1:c")
    await worker.execute("nothing_like_it", {}, key="1:d")
    calls = (await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}/calls")).json()
    assert [(one["tool_name"], one["verdict"], one["first_call"]) for one in calls] == [
        ("echo", "invalid_params", True),
        ("echo", "ok", False),
        ("count", "ok", True),
        ("nothing_like_it", "tool_not_found", True),
    ]
    assert calls[0]["rules"] == ["type"]
    assert calls[1]["params"] == {"text": "[masked]"}
    assert calls[1]["call_id"] == "1:b"


async def test_the_row_of_a_call_with_effects_is_there_before_its_answer(orchestrator: Wired) -> None:
    """00-decisions 14."""
    worker = await orchestrator.worker()
    await worker.execute("count", {}, key="1:a")
    rows = await orchestrator.stores.audit.read(job_id=worker.job_id)
    assert [row.tool_name for row in rows] == ["count"]


async def test_calls_made_and_ended_together_are_audited_once_each(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await asyncio.gather(*(worker.execute("count", {}, key=f"1:{n}") for n in range(20)))
    await eventually(lambda: len(orchestrator.tools["count"].calls) == 20)
    rows = await orchestrator.stores.audit.read(job_id=worker.job_id)
    assert sorted(row.call_id for row in rows) == sorted(f"1:{n}" for n in range(20))
