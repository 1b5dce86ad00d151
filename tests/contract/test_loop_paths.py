"""One loop on two paths (HW-3, PD-10): the same jobs end the same way in a worker and in the orchestrator.

Everything is real but the model, the tools and the container: the hosted path is a whole worker over its
job's own socket, the other one the orchestrator's in-process job.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.jobs import Job, JobId
from orchestrator.ports.models import ModelAnswer, ModelError, ModelRequest, ModelUsage
from tests.fakes.local_tools import LocalToolSet
from tests.fakes.model import FINISH, calls
from tests.support.deadline import eventually
from tests.support.orchestrator import Wired
from worker.clock import SystemClock
from worker.run import HostedWorker
from worker.settings import Settings

_LONGEST_S = 45.0
_GRACE_S = 2.0


class JobPath:
    """Runs jobs on one of the paths."""

    def __init__(self, orchestrator: Wired, mode: str, directory: Path) -> None:
        self.orchestrator = orchestrator
        self.mode = mode
        self._directory = directory
        self._workers: list[asyncio.Task[int]] = []

    async def start(self, **asked: Any) -> str:
        """A job that runs."""
        if self.mode == "in-process":
            return await self.orchestrator.new_job(mode="in-process", **asked)
        job_id = await self.orchestrator.launched(**asked)
        place = self.orchestrator.engine.sandbox(self.orchestrator.sandbox(job_id)).spec.socket_dir
        assert place is not None
        settings = Settings(
            job_id,
            socket=place / "s",
            token_file=place / "token",
            state_dir=self._directory / job_id / "state",
            output_dir=self._directory / job_id / "out",
            workspace=self._directory / job_id / "workspace",
        )
        worker = HostedWorker(
            settings, lambda _workspace, _credentials, _output: LocalToolSet(), SystemClock()
        )
        self._workers.append(asyncio.create_task(worker.run()))
        return job_id

    async def run(self, *answers: ModelAnswer | ModelError, **asked: Any) -> Job:
        """A job with these answers, at its end."""
        self.orchestrator.model.then(*answers)
        return await self.ended(await self.start(**asked))

    async def ended(self, job_id: str) -> Job:
        job = await self.orchestrator.ended(job_id, within_s=_LONGEST_S)
        await self.close()
        return job

    async def close(self) -> None:
        """The workers end by themselves, or with their containers as the engine would have it."""
        if not self._workers:
            return
        workers, self._workers = self._workers, []
        done, late = await asyncio.wait(workers, timeout=_GRACE_S)
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert {worker.result() for worker in done if not worker.cancelled()} <= {0, 1}


@pytest.fixture(params=["hosted", "in-process"])
async def path(request: pytest.FixtureRequest, orchestrator: Wired, tmp_path: Path) -> AsyncIterator[JobPath]:
    made = JobPath(orchestrator, request.param, tmp_path)
    yield made
    await made.close()


def results(request: ModelRequest) -> list[tuple[str | None, str, bool]]:
    """The last turn's results as the model is shown them: (call id, text, is_error)."""
    last = max(at for at, one in enumerate(request.messages) if one.role == "assistant")
    return [
        (one.tool_call_id, str(one.content), one.is_error)
        for one in request.messages[last + 1 :]
        if one.role == "tool"
    ]


async def test_finish_completes_with_its_summary(path: JobPath) -> None:
    job = await path.run(calls(("1", "echo", '{"text": "a"}')), FINISH)
    assert (job.state, job.message, job.reason, job.iterations) == ("completed", "done", "", 2)


async def test_a_final_text_completes_with_the_text(path: JobPath) -> None:
    job = await path.run(ModelAnswer("all is well", "stop"))
    assert (job.state, job.message) == ("completed", "all is well")


async def test_a_final_text_too_long_for_a_report_is_cut_and_the_job_completes(path: JobPath) -> None:
    job = await path.run(ModelAnswer("a" * 70_000, "stop"))
    assert job.state == "completed"
    assert len(job.message or "") == 65_000


async def test_a_finish_without_success_fails_with_its_reason(path: JobPath) -> None:
    job = await path.run(calls(("1", "finish", '{"success": false, "summary": "no compiler here"}')))
    assert job.state == "failed"
    assert "no compiler here" in job.reason


async def test_the_first_request_carries_every_schema_and_the_task(path: JobPath) -> None:
    job = await path.run(task="count the files")
    (request,) = path.orchestrator.model.requests
    assert request.tools is not None
    names = {tool.name for tool in request.tools}
    assert {"echo", "count", "finish", "network_inbox"} <= names
    schemas = {
        entry.name: entry.definition.parameters_json for entry in path.orchestrator.running.registry.entries()
    }
    assert {tool.parameters_json for tool in request.tools if tool.name == "echo"} == {schemas["echo"]}
    (contract,) = await path.orchestrator.events(job.id, "contract")
    assert contract["identical"]
    assert [one.content for one in request.messages if one.role == "user"] == ["count the files"]


async def test_results_come_in_call_order_one_for_each_id(path: JobPath) -> None:
    """BR-141: also for ids that are missing or twice there, and with calls that fail among them."""
    turn = calls(
        ("x", "echo", '{"text": "1"}'),
        ("x", "echo", '{"text": "2"}'),
        ("", "echo", '{"text": "3"}'),
        ("y", "echo", "{broken"),
        ("z", "ecko", "{}"),
        ("w", "echo", '{"text": 5}'),
    )
    await path.run(turn, FINISH)
    shown = results(path.orchestrator.model.requests[1])
    assert len({call_id for call_id, _, _ in shown}) == 6
    assert [text for _, text, _ in shown[:3]] == ["1", "2", "3"]
    assert [is_error for _, _, is_error in shown] == [False, False, False, True, True, True]
    assert "echo" in shown[4][1]  # the near name
    assert "/text" in shown[5][1]


async def test_nothing_of_a_cut_answer_runs(path: JobPath) -> None:
    """BR-138."""
    cut = calls(("1", "count", "{}"), ("2", "count", '{"a'))
    cut = ModelAnswer(cut.content, "length", cut.tool_calls)
    await path.run(cut, FINISH)
    assert path.orchestrator.tools["count"].calls == []
    assert [is_error for _, _, is_error in results(path.orchestrator.model.requests[1])] == [True, True]


async def test_empty_answers_end_the_job_with_that_reason(path: JobPath) -> None:
    """BR-143."""
    job = await path.run(*[ModelAnswer("", "stop")] * 3)
    assert job.state == "failed"
    assert "empty responses" in job.reason


async def test_the_same_call_without_end_is_stuck(path: JobPath) -> None:
    """BR-143."""
    job = await path.run(*[calls((f"c{n}", "echo", '{"text": "a"}')) for n in range(12)])
    assert job.state == "failed"
    assert "stuck: echo" in job.reason


async def test_read_only_calls_of_a_turn_run_side_by_side(path: JobPath) -> None:
    """Two gated ones are in at once; a call with effects waits for its turn."""
    tools = path.orchestrator.tools
    path.orchestrator.model.then(
        calls(("1", "slow_read", '{"n": 1}'), ("2", "slow_read", '{"n": 2}')), FINISH
    )
    job_id = await path.start()
    await eventually(lambda: len(tools["slow_read"].calls) == 2)
    tools.gate.set()
    assert (await path.ended(job_id)).state == "completed"


async def test_calls_with_effects_run_one_after_the_other(path: JobPath) -> None:
    tools = path.orchestrator.tools
    path.orchestrator.model.then(calls(("1", "held", "{}"), ("2", "count", "{}")), FINISH)
    job_id = await path.start()
    await eventually(tools.entered.is_set)
    assert tools["count"].calls == []
    tools.gate.set()
    assert (await path.ended(job_id)).state == "completed"
    assert tools["count"].calls == [{}]


@pytest.mark.parametrize(
    ("limits", "said"), [({"max_iterations": 2}, "2 iterations"), ({"max_tokens": 50}, "50 tokens")]
)
async def test_a_limit_ends_with_what_was_done(path: JobPath, limits: dict[str, int], said: str) -> None:
    """PD-17: the last text is the message, the reason names the limit."""
    turn = calls(("1", "echo", '{"text": "a"}'))
    spent = ModelUsage(input_tokens=30)
    job = await path.run(
        *[ModelAnswer(f"step {n}", "tool_calls", turn.tool_calls, usage=spent) for n in range(5)], **limits
    )
    assert job.state == "failed"
    assert job.reason.startswith("limit reached: ")
    assert said in job.reason
    assert job.message == "step 1"
    assert (job.model_requests, job.tokens_used) == (2, 60)
    assert len(path.orchestrator.model.requests) == 2
    if path.mode == "hosted":
        assert job.changes_sha256 is not None


async def test_a_budget_that_only_the_orchestrator_knows_to_be_spent_is_a_limit(path: JobPath) -> None:
    """PD-17: whoever spent it, the loop hears `budget_exhausted` and hands over what was done."""
    path.orchestrator.model.gate.clear()
    path.orchestrator.model.then(calls(("1", "echo", '{"text": "a"}')))
    job_id = await path.start(max_tokens=100)
    await eventually(lambda: path.orchestrator.model.requests)

    def spend(job: Job) -> Job:
        return replace(job, tokens_used=1_000)

    job = await path.orchestrator.job(job_id)
    await path.orchestrator.stores.jobs.update(job.id, spend)
    path.orchestrator.model.gate.set()
    job = await path.ended(job_id)
    assert (job.state, job.iterations) == ("failed", 2)
    assert "limit reached: the limit of 100 tokens" in job.reason


async def test_an_operator_s_word_is_heard_between_two_steps(path: JobPath) -> None:
    steps = [calls((f"{step}", "echo", json.dumps({"text": f"step {step}"}))) for step in range(2, 60)]
    path.orchestrator.model.then(calls(("1", "held", "{}")), *steps, FINISH)
    job_id = await path.start()
    await eventually(path.orchestrator.tools.entered.is_set)
    await path.orchestrator.operator.post(f"/api/v1/jobs/{job_id}/prompt", json={"text": "hurry up"})
    path.orchestrator.tools.gate.set()
    assert (await path.ended(job_id)).state == "completed"
    last = path.orchestrator.model.requests[-1].messages
    assert [one.content for one in last if one.role == "user"][-1] == "hurry up"
    assert await path.orchestrator.stores.deliveries.pending(JobId(job_id)) == []


@pytest.mark.parametrize("moment", ["in the first request", "in a call", "in a later request"])
async def test_a_cancel_at_any_moment_ends_the_job_as_cancelled(path: JobPath, moment: str) -> None:
    """BR-108, BR-109: the request or call under way is given up, and the timeline ends with the word."""
    model, tools = path.orchestrator.model, path.orchestrator.tools
    model.then(calls(("1", "held" if moment == "in a call" else "echo", '{"text": "a"}')))
    if moment == "in the first request":
        model.gate.clear()
    job_id = await path.start()
    if moment == "in a call":
        await eventually(tools.entered.is_set)
    elif moment == "in a later request":
        await eventually(lambda: model.requests)
        model.gate.clear()
    await eventually(lambda: model.requests)
    await path.orchestrator.operator.post(f"/api/v1/jobs/{job_id}/cancel")
    job = await path.ended(job_id)
    model.gate.set()
    # What follows in a hosted job's reason is said of the sandbox in memory, which has no files to recover.
    assert (job.state, job.reason.partition(";")[0]) == ("cancelled", "cancelled by the operator")
    async with asyncio.timeout(10):
        while (await path.orchestrator.events(job_id, "status"))[-1]["state"] != "cancelled":  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_model_that_fails_says_why_and_one_that_stays_away_too(path: JobPath) -> None:
    """BR-137: waiting is the orchestrator's; what comes after it is the end."""
    job = await path.run(
        calls(("1", "echo", '{"text": "a"}')), ModelError("overloaded for 8 minutes", retryable=True)
    )
    assert job.state == "failed"
    assert "overloaded for 8 minutes" in job.reason


async def test_a_model_that_takes_its_time_is_waited_for(path: JobPath) -> None:
    """BR-137: no read timeout of the loop's own cuts an answer off; the job's state stays fresh meanwhile."""
    path.orchestrator.model.gate.clear()
    job_id = await path.start()
    await eventually(lambda: path.orchestrator.model.requests)
    assert (await path.orchestrator.job(job_id)).state == "running"
    path.orchestrator.model.gate.set()
    assert (await path.ended(job_id)).state == "completed"


async def test_a_tool_with_a_bug_costs_its_call_and_not_the_job(path: JobPath) -> None:
    job = await path.run(calls(("1", "has_bug", "{}")), FINISH)
    assert job.state == "completed"
    ((_, text, is_error),) = results(path.orchestrator.model.requests[1])
    assert is_error
    assert "/srv/secret" not in text


async def test_two_inbox_calls_in_one_turn_are_both_received_with_the_next_request(path: JobPath) -> None:
    """BR-123: the model is shown both results; before that neither message counts as read."""
    await path.run(calls(("1", "network_inbox", "{}"), ("2", "network_inbox", "{}")), FINISH)
    assert [is_error for _, _, is_error in results(path.orchestrator.model.requests[1])] == [False, False]
