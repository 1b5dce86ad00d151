"""PD-32: jobs whose agent is a command, as operators and workers see them."""

from __future__ import annotations

from tests.support.orchestrator import Wired, problem


async def test_a_worker_is_told_the_command_and_its_end_is_the_job_s(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(command="make test")
    assert (await worker.get("job")).json()["command"] == "make test"
    await worker.finish("failed", reason="the command exited with code 3", result={"exit_code": 3})
    shown = (await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}")).json()
    assert (shown["state"], shown["command"], shown["exit_code"]) == ("failed", "make test", 3)


async def test_a_job_without_a_command_has_no_exit_code(orchestrator: Wired) -> None:
    """Whatever its worker says."""
    worker = await orchestrator.worker()
    assert (await worker.get("job")).json()["command"] is None
    await worker.finish("completed", result={"exit_code": 3})
    assert (await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}")).json()["exit_code"] is None


async def test_a_command_s_own_words_about_its_end_are_never_a_fault(orchestrator: Wired) -> None:
    for result in ("text", [1], {"exit_code": "3"}, {}):
        worker = await orchestrator.worker(command="true")
        await worker.finish("completed", result=result)
        assert (await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}")).json()["exit_code"] is None


async def test_commands_that_can_not_run_are_refused_at_the_start(orchestrator: Wired) -> None:
    for asked in (
        {"command": "make", "mode": "in-process"},
        {"command": "   "},
        {"command": ""},
        {"command": "a\0b"},
        {"command": "x" * 32_001},
    ):
        answer = await orchestrator.operator.post("/api/v1/jobs", json={"task": "t", **asked})
        assert problem(answer)["code"] == "invalid_request", asked


async def test_a_command_takes_no_prompts(orchestrator: Wired) -> None:
    job_id = await orchestrator.launched(command="sleep 5")
    answer = await orchestrator.operator.post(f"/api/v1/jobs/{job_id}/prompt", json={"text": "hello"})
    assert (problem(answer)["status"], problem(answer)["code"]) == (409, "conflict")


async def test_output_is_an_event_like_any_other_and_freed_of_secrets(orchestrator: Wired) -> None:
    """BR-121."""
    worker = await orchestrator.worker(command="true")
    data = {"stream": "stdout", "text": f"key {orchestrator.tools.secret}\n"}
    event = {"seq": 1, "type": "output", "at": "2026-01-02T03:04:05Z", "data": data}
    assert (await worker.post("events", {"events": [event]})).status_code == 204
    (told,) = await orchestrator.events(worker.job_id, "output")
    assert told["text"].startswith("key [redacted:")
