"""What ends a loop when its agent does not: nothing said, nothing new, or a limit (PD-10)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.fakes.local_tools import LocalTool
from tests.fakes.transport import MemoryTransport, calls, finishes, says
from tests.support.sessions import echo, job_of, remote, run
from tool_registry.errors import RemoteProblem
from worker.protocol.tools import ToolPolicy


async def test_the_same_unknown_name_without_end_fails_the_job(tmp_path: Path) -> None:
    """BR-142: even when the arguments differ each time."""
    transport = MemoryTransport()
    transport.model = lambda _request: calls(("c", "no_such", f'{{"n": {len(transport.requests)}}}'))
    end = await run(transport, tmp_path, echo())
    assert end.outcome == "failed"
    assert end.reason is not None
    assert "repeated unknown tool no_such" in end.reason
    assert len(transport.requests) == 10


async def test_one_empty_answer_is_forgiven(tmp_path: Path) -> None:
    """BR-143: one nudge, then on."""
    transport = MemoryTransport(says(" \n"), says("the answer"))
    end = await run(transport, tmp_path)
    assert (end.outcome, end.message) == ("completed", "the answer")
    assert "empty" in str(transport.requests[1].messages[-1].content)


async def test_empty_answers_without_end_fail_the_job(tmp_path: Path) -> None:
    """BR-143: an empty success is the worst result."""
    transport = MemoryTransport()
    transport.model = lambda _request: says("")
    end = await run(transport, tmp_path)
    assert end.outcome == "failed"
    assert end.reason is not None
    assert "empty responses" in end.reason
    assert len(transport.requests) == 3


async def test_a_content_filter_is_named(tmp_path: Path) -> None:
    """BR-143: filter and refusal are named as such."""
    end = await run(MemoryTransport(says("I", "content_filter")), tmp_path)
    assert end.outcome == "failed"
    assert end.reason is not None
    assert "content filter" in end.reason


async def test_the_same_call_with_the_same_result_is_warned_and_ended(tmp_path: Path) -> None:
    """BR-143: a notice after 5, the end after 10."""
    transport = MemoryTransport()
    transport.model = lambda _request: calls(("c", "echo", '{"a": 1}'))
    end = await run(transport, tmp_path, echo())
    assert end.outcome == "failed"
    assert end.reason is not None
    assert "stuck" in end.reason
    assert len(transport.requests) == 10
    noticed = [i for i, one in enumerate(transport.requests) if "5 times" in str(one.messages[-1].content)]
    assert noticed == [5]


async def test_a_poll_whose_result_changes_is_left_alone(tmp_path: Path) -> None:
    """BR-143: changing results are no loop."""
    count = 0

    async def poll(_params: dict[str, Any]) -> dict[str, int]:
        nonlocal count
        count += 1
        return {"done": count}

    transport = MemoryTransport()
    transport.model = lambda _request: finishes() if count == 30 else calls(("c", "poll", "{}"))
    end = await run(transport, tmp_path, LocalTool("poll", poll))
    assert end.outcome == "completed"
    assert count == 30


async def test_waiting_for_others_is_bounded_by_the_jobs_own_limits_alone(tmp_path: Path) -> None:
    """BR-143: the same empty answer of a tool that awaits others neither warns nor ends as stuck."""
    transport = MemoryTransport()
    transport.tools = [remote("network_inbox")]
    transport.policies = {"network_inbox": ToolPolicy(awaits_others=True)}
    transport.model = lambda _request: calls(("c", "network_inbox", "{}"))
    end = await run(transport, tmp_path, job=job_of(max_iterations=30))
    assert (end.outcome, end.reason) == ("limit", "the limit of 30 iterations was reached")
    assert "5 times" not in str(transport.requests[-1].messages)


async def test_the_iteration_limit_ends_with_outcome_limit(tmp_path: Path) -> None:
    transport = MemoryTransport()
    transport.model = lambda _request: calls(
        ("c", "echo", f'{{"n": {len(transport.requests)}}}'), text="on it"
    )
    end = await run(transport, tmp_path, echo(), job=job_of(max_iterations=3))
    assert (end.outcome, end.iterations, end.message) == ("limit", 3, "on it")
    assert end.reason == "the limit of 3 iterations was reached"


async def test_the_token_limit_ends_with_outcome_limit(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c", "echo", "{}")), says("no", tokens=5))
    transport.model = lambda _request: calls(("c", "echo", "{}")).model_copy(
        update={"usage": says("", tokens=60).usage}
    )
    end = await run(transport, tmp_path, echo(), job=job_of(max_tokens=100))
    assert (end.outcome, end.iterations) == ("limit", 2)


async def test_the_deadline_stops_a_running_tool(tmp_path: Path) -> None:
    async def hang(_params: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        return "never"

    transport = MemoryTransport(calls(("c", "hang", "{}"), text="working"))
    end = await run(transport, tmp_path, LocalTool("hang", hang), job=job_of(deadline_s=0.5))
    assert (end.outcome, end.message) == ("limit", "working")
    assert end.reason is not None
    assert "deadline" in end.reason


async def test_an_exhausted_budget_is_a_limit_and_other_model_errors_are_failures(tmp_path: Path) -> None:
    spent = RemoteProblem("the budget of 5 USD is spent", code="budget_exhausted", retryable=False)
    assert (await run(MemoryTransport(spent), tmp_path)).outcome == "limit"
    refused = RemoteProblem("no such model", code="model_error", retryable=False)
    end = await run(MemoryTransport(refused), tmp_path)
    assert (end.outcome, end.reason) == ("failed", "model_error: no such model")
