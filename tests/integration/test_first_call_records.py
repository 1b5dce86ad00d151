"""What is told of first calls: of one job, and of a tool over all jobs (PD-20, PD-21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.model import CapturingModel, calls
from tests.support.orchestrator import Wired, problem


async def contract_of(orchestrator: Wired, job_id: str) -> dict[str, Any]:
    return (await orchestrator.operator.get(f"/api/v1/jobs/{job_id}/contract")).json()


async def stats_of(orchestrator: Wired, name: str) -> dict[str, Any]:
    answer = await orchestrator.operator.get(f"/api/v1/tools/{name}/stats")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ran(orchestrator: Wired, *turns: Any, **asked: Any) -> str:
    """A job without a container that makes these calls and finishes."""
    assert isinstance(orchestrator.model, CapturingModel)
    orchestrator.model.then(*turns)
    job_id = await orchestrator.new_job(mode="in-process", **asked)
    assert (await orchestrator.ended(job_id, within_s=20.0)).state == "completed"
    return job_id


def echo(call_id: str, **arguments: Any) -> Any:
    return calls((call_id, "echo", json.dumps(arguments)))


async def test_a_job_s_contract_names_both_hashes_and_every_first_call(orchestrator: Wired) -> None:
    job_id = await ran(
        orchestrator,
        calls(("1", "echo", '{"text": 5, "tmes": 1}')),
        calls(("2", "echo", '{"text": "a", "times": null}'), ("3", "count", "{}")),
        calls(("4", "finish", "{}")),
    )
    told = await contract_of(orchestrator, job_id)
    (event,) = await orchestrator.events(job_id, "contract")
    assert (told["state"], told["identical"], told["tools"]) == ("completed", True, event["tools"])
    assert told["catalog_hash"] == told["request_hash"] == event["catalog_hash"]
    first = {one["tool_name"]: one for one in told["first_calls"]}
    assert list(first) == ["echo", "count", "finish"]
    assert (first["echo"]["verdict"], first["echo"]["schema_verdict"]) == ("invalid_params", "violates")
    assert {(one["pointer"], one["rule"]) for one in first["echo"]["errors"]} == {
        ("/text", "type"),
        ("/tmes", "additionalProperties"),
    }
    assert "did you mean 'times'" in json.dumps(first["echo"]["errors"])
    assert (first["count"]["verdict"], first["count"]["schema_verdict"]) == ("ok", "fits")
    assert (first["finish"]["source"], first["finish"]["schema_verdict"]) == ("local", "violates")


async def test_arguments_that_are_no_object_are_a_first_call_too(orchestrator: Wired) -> None:
    """The worker can't send such a call; its verdict counts all the same, and once."""
    job_id = await ran(orchestrator, calls(("1", "echo", '{"text": NaN}')), echo("2", text="a"))
    (first,) = [
        one for one in (await contract_of(orchestrator, job_id))["first_calls"] if one["tool_name"] == "echo"
    ]
    assert (first["schema_verdict"], first["errors"][0]["rule"]) == ("violates", "json")
    found = await stats_of(orchestrator, "echo")
    assert (found["first_call_rate"], found["calls"], found["retries_largest"]) == (0.0, 2, 1)
    shown = (await orchestrator.operator.get(f"/api/v1/jobs/{job_id}/calls")).json()
    assert [(one["first_call"], one["schema_verdict"]) for one in shown if one["tool_name"] == "echo"] == [
        (True, "violates"),
        (False, "fits"),
    ]


async def test_a_tool_s_stats_are_over_all_jobs_and_leave_calls_by_hand_out(orchestrator: Wired) -> None:
    await ran(orchestrator, echo("1", text="a"))
    await ran(orchestrator, echo("1", text=1), echo("2", text=2), echo("3", text="a", times=None))
    await orchestrator.operator.post("/api/v1/tools/echo/call", json={"params": {}})
    found = await stats_of(orchestrator, "echo")
    assert (found["first_calls"], found["first_call_rate"], found["calls"]) == (2, 0.5, 4)
    assert (found["retries_mean"], found["retries_largest"], found["never_fitted"]) == (1.0, 2, 0)
    assert [(one["pointer"], one["what"], one["count"]) for one in found["violations"]] == [
        ("/text", "type", 2)
    ]
    assert [(one["pointer"], one["what"]) for one in found["adjustments"]] == [("/times", "null dropped")]
    assert found["verdicts"] == {"invalid_params": 2, "ok": 2}
    assert found["output_bytes"]["largest"] > 0
    everything = (await orchestrator.operator.get("/api/v1/tool-stats")).json()
    assert [one["tool_name"] for one in everything] == ["echo"]
    assert everything == [found]


async def test_a_tool_nobody_called_has_empty_stats_and_an_unknown_one_none(orchestrator: Wired) -> None:
    found = await stats_of(orchestrator, "count")
    assert (found["calls"], found["first_call_rate"]) == (0, None)
    answer = await orchestrator.operator.get("/api/v1/tools/nothing/stats")
    assert (answer.status_code, problem(answer)["code"]) == (404, "not_found")


async def test_what_was_changed_of_arguments_is_in_timeline_contract_and_calls(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """A job's own policy; each coercion is told by pointer and type, and no other job is coerced."""
    asked = echo("1", text="a", times="3")
    job_id = await ran(orchestrator, asked, coerce="safe")
    assert orchestrator.tools["echo"].calls == [{"text": "a", "times": 3}]
    change = {"pointer": "/times", "kind": "coerced", "was": "string", "became": "integer"}
    results = await orchestrator.events(job_id, "tool_result")
    assert results[0]["adjustments"] == [change]
    assert (await contract_of(orchestrator, job_id))["first_calls"][0]["adjustments"] == [change]
    shown = (await orchestrator.operator.get(f"/api/v1/jobs/{job_id}/calls")).json()
    assert (shown[0]["adjustments"], shown[0]["params"]["times"]) == ([change], 3)
    await ran(orchestrator, asked)
    assert len(orchestrator.tools["echo"].calls) == 1


async def test_the_container_s_own_tools_follow_the_job_s_policy(orchestrator: Wired) -> None:
    job_id = await ran(
        orchestrator, calls(("1", "finish", '{"success": "true", "summary": "done"}')), coerce="safe"
    )
    results = await orchestrator.events(job_id, "tool_result")
    assert [one["pointer"] for one in results[0]["adjustments"]] == ["/success"]
