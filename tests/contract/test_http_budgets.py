"""PD-17: the model proxy holds a job to its budgets, whatever asks from its container."""

from __future__ import annotations

import asyncio

from orchestrator.ports.models import ModelAnswer, ModelError, ModelUsage
from tests.support.deadline import eventually
from tests.support.orchestrator import Wired, problem, wired

ASK = {"messages": [{"role": "user", "content": "hi"}]}


def answer(tokens: int) -> ModelAnswer:
    return ModelAnswer("hello", "stop", usage=ModelUsage(input_tokens=tokens - 1, output_tokens=1))


async def test_a_spent_token_budget_stops_the_next_request_and_the_provider_is_not_asked(
    orchestrator: Wired,
) -> None:
    worker = await orchestrator.worker(max_tokens=100)
    orchestrator.model.then(answer(60), answer(60))
    assert (await worker.post("llm/complete", ASK)).status_code == 200
    assert (await worker.post("llm/complete_with_tools", ASK | {"tools": []})).status_code == 200
    for path in ("llm/complete", "llm/complete_with_tools"):
        refused = await worker.post(path, ASK if path == "llm/complete" else ASK | {"tools": []})
        assert (refused.status_code, problem(refused)["code"]) == (403, "budget_exhausted")
        assert not problem(refused)["retryable"]
        assert "100 tokens" in problem(refused)["detail"]
    assert len(orchestrator.model.requests) == 2
    shown = (await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}")).json()
    assert (shown["tokens_used"], shown["model_requests"], shown["max_tokens"]) == (120, 2, 100)


async def test_the_iteration_budget_counts_answers_and_not_failures(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(max_iterations=2)
    down = ModelError("overloaded", status=502, retryable=True)
    orchestrator.model.then(down, answer(5), down, answer(5))
    codes = [(await worker.post("llm/complete", ASK)).status_code for _ in range(5)]
    assert codes == [502, 200, 502, 200, 403]


async def test_requests_side_by_side_share_one_budget(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(max_iterations=3)
    orchestrator.model.gate.clear()
    asked = [asyncio.ensure_future(worker.post("llm/complete", ASK)) for _ in range(8)]
    await eventually(lambda: sum(one.done() for one in asked) == 5)
    orchestrator.model.gate.set()
    codes = sorted([one.status_code for one in await asyncio.gather(*asked)])
    assert codes == [200] * 3 + [403] * 5
    assert len(orchestrator.model.requests) == 3


async def test_one_job_s_budget_is_not_another_s(orchestrator: Wired) -> None:
    first, second = await orchestrator.worker(max_iterations=1), await orchestrator.worker(max_iterations=1)
    assert (await first.post("llm/complete", ASK)).status_code == 200
    assert (await first.post("llm/complete", ASK)).status_code == 403
    assert (await second.post("llm/complete", ASK)).status_code == 200


async def test_what_was_spent_survives_a_restart(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(max_tokens=50)
    orchestrator.model.then(answer(50))
    assert (await worker.post("llm/complete", ASK)).status_code == 200
    job = await orchestrator.job(worker.job_id)
    assert (job.model_requests, job.tokens_used) == (1, 50)
    await orchestrator.running.close()
    async with wired(orchestrator.settings.home, engine=orchestrator.engine):
        assert (await worker.post("llm/complete", ASK)).status_code == 403
