"""PD-4: the operator API for jobs: what it takes, shows and refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.deadline import within
from tests.support.orchestrator import Wired, problem

JOBS = "/api/v1/jobs"


async def test_a_job_is_shown_with_its_defaults(orchestrator: Wired) -> None:
    answer = await orchestrator.operator.post(JOBS, json={"task": "Fix it\nand more"})
    assert answer.status_code == 201
    job = answer.json()
    assert (job["title"], job["agent"], job["network"]) == ("Fix it", "coder", "local")
    assert (job["model"], job["mode"], job["state"]) == ("scripted:model", "hosted", "queued")
    shown = (await orchestrator.operator.get(f"{JOBS}/{job['id']}")).json()
    assert shown["id"] == job["id"]


@pytest.mark.parametrize(
    "asked",
    [
        {"task": ""},
        {"task": " \n "},
        {"task": "\x1c"},
        {"task": "t", "timeout_s": 0},
        {"task": "t", "timeout_s": 10**6},
        {"task": "t", "agent": "no spaces please"},
        {"task": "t", "network": "../x"},
        {"task": "t", "memory_bytes": 1},
        {"task": "t", "cpus": 0},
        {"task": "t", "secrets": {"a": "NOT=A NAME"}},
        {"task": "t", "secrets": {"a": ""}},
        {"task": "t", "workspace_sha256": "0" * 64},
        {"task": "t", "workspace_sha256": "../../etc/passwd"},
        {"task": "t", "mode": "in-process", "workspace_sha256": "0" * 64},
        {"task": "t", "mode": "elsewhere"},
        {"title": "no task"},
    ],
    ids=str,
)
async def test_a_job_that_can_t_be_is_refused_before_it_is_stored(
    orchestrator: Wired, asked: dict[str, Any]
) -> None:
    answer = await orchestrator.operator.post(JOBS, json=asked)
    assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request")
    assert (await orchestrator.operator.get(JOBS)).json() == []


async def test_jobs_are_listed_newest_first_and_by_state(orchestrator: Wired) -> None:
    first, second = await orchestrator.launched(), await orchestrator.launched()
    await orchestrator.operator.post(f"{JOBS}/{first}/cancel")
    await orchestrator.ended(first)
    listed = (await orchestrator.operator.get(JOBS)).json()
    assert [one["id"] for one in listed] == [second, first]
    ended = (await orchestrator.operator.get(JOBS, params={"state": ["cancelled", "failed"]})).json()
    assert [one["id"] for one in ended] == [first]
    assert len((await orchestrator.operator.get(JOBS, params={"limit": 1})).json()) == 1


async def test_what_there_is_no_job_for_is_404(orchestrator: Wired) -> None:
    for method, path in (
        ("GET", "x"),
        ("GET", "x/events"),
        ("GET", "x/diff"),
        ("GET", "x/calls"),
        ("POST", "x/cancel"),
        ("DELETE", "x"),
    ):
        answer = await orchestrator.operator.request(method, f"{JOBS}/{path}")
        assert (answer.status_code, problem(answer)["code"]) == (404, "not_found"), path
    no_diff = await orchestrator.operator.get(f"{JOBS}/{await orchestrator.launched()}/diff")
    assert problem(no_diff)["detail"] == "this job has not uploaded its changes"


async def test_an_ended_job_takes_no_prompt(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    path = f"{JOBS}/{worker.job_id}/prompt"
    assert problem(await orchestrator.operator.post(path, json={"text": "  "}))["code"] == "invalid_request"
    await worker.finish()
    answer = await orchestrator.operator.post(path, json={"text": "more"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "conflict")


async def live(orchestrator: Wired, job_id: str, after: int = 0) -> list[str]:
    """The event stream to its end."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    async with orchestrator.operator.stream("GET", f"{JOBS}/{job_id}/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [line async for line in answer.aiter_lines() if line.startswith("data: ")]


async def test_the_event_stream_ends_after_the_last_event_of_the_job(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    following = asyncio.create_task(live(orchestrator, worker.job_id))
    await worker.post("status", {"state": "running", "message": "half way", "iteration": 1})
    await worker.finish(message="done")
    seen = await within(5.0, following)
    stored = (await orchestrator.operator.get(f"{JOBS}/{worker.job_id}/events")).json()
    assert len(seen) == len(stored)
    assert '"completed"' in seen[-1]


async def test_a_stream_that_is_taken_up_again_goes_on_and_ends_soon(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await worker.finish()
    stored = (await orchestrator.operator.get(f"{JOBS}/{worker.job_id}/events")).json()
    rest = await within(5.0, live(orchestrator, worker.job_id, after=stored[0]["position"]))
    assert len(rest) == len(stored) - 1
    none = await within(5.0, live(orchestrator, worker.job_id, after=stored[-1]["position"]))
    assert none == []


async def test_a_stream_ends_when_its_job_is_removed(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await worker.finish()
    await orchestrator.operator.delete(f"{JOBS}/{worker.job_id}")
    answer = await orchestrator.operator.get(
        f"{JOBS}/{worker.job_id}/events", headers={"Accept": "text/event-stream"}
    )
    assert answer.status_code == 404
