"""The loop when the model's context is full (PD-10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.local_tools import LocalTool
from tests.fakes.transport import MemoryTransport, calls, finishes, results_of
from tests.support.sessions import echo, run
from tool_registry.errors import RemoteProblem
from worker.history import check_pairing
from worker.protocol.llm import CompleteWithToolsRequest

OVERFLOW = RemoteProblem("too long", code="model_error", retryable=False, cause="context_overflow")


async def test_an_overflow_is_answered_by_one_compaction_and_one_more_try(tmp_path: Path) -> None:
    """BR-144: recognised, shortened once, sent once more; the pairing holds."""
    transport = MemoryTransport()

    def model(request: CompleteWithToolsRequest) -> Any:
        size = sum(len(str(message.content)) for message in request.messages)
        if size > 30_000:
            return OVERFLOW
        done = sum(1 for one in transport.requests if len(one.messages) > 2)
        return finishes() if done > 60 else calls(("", "blob", f'{{"n": {done}}}'))

    async def blob(params: dict[str, Any]) -> str:
        return f"{params['n']} " + "x" * 1_000

    transport.model = model
    end = await run(transport, tmp_path, LocalTool("blob", blob))
    assert end.outcome == "completed"
    for request in transport.requests:
        check_pairing(request.messages)
        assert request.messages[1].content == "the task"
    assert "shortened" in transport.logs()


async def test_an_overflow_that_no_compaction_cures_fails_at_once(tmp_path: Path) -> None:
    """BR-144: system prompt and tools alone exceed the window: one request, a clear reason."""
    transport = MemoryTransport()
    transport.model = lambda _request: OVERFLOW
    end = await run(transport, tmp_path)
    assert end.outcome == "failed"
    assert end.reason is not None
    assert "tools and the task alone" in end.reason
    assert len(transport.requests) == 1


async def test_one_huge_result_is_clipped_after_an_overflow(tmp_path: Path) -> None:
    """BR-144: a result that fills the window alone is cut to its ends."""
    transport = MemoryTransport()

    def model(request: CompleteWithToolsRequest) -> Any:
        size = sum(len(str(message.content)) for message in request.messages)
        if size > 20_000:
            return OVERFLOW
        return calls(("c", "huge", "{}")) if len(transport.requests) == 1 else finishes()

    async def huge(_params: dict[str, Any]) -> str:
        return "head " + "x" * 60_000 + " tail"

    transport.model = model
    end = await run(transport, tmp_path, LocalTool("huge", huge))
    assert end.outcome == "completed"
    assert len(transport.requests) == 3
    shown = str(results_of(transport.requests[2])[0].content)
    assert shown.startswith("head ")
    assert shown.endswith(" tail")


async def test_over_the_budget_old_results_become_one_line_each_before_anything_else(tmp_path: Path) -> None:
    """BR-144: oldest first; the task and the last ten turns stay."""
    transport = MemoryTransport()
    transport.model = lambda _request: (
        finishes()
        if len(transport.requests) > 20
        else calls(("", "blob", f'{{"n": {len(transport.requests)}}}'))
    )

    async def blob(params: dict[str, Any]) -> str:
        return f"{params['n']} " + "x" * 2_000

    await run(transport, tmp_path, LocalTool("blob", blob), context_tokens=9_500)
    last = transport.requests[-1]
    check_pairing(last.messages)
    texts = [str(one.content) for one in results_of(last)]
    assert texts[0].startswith("[result left out")
    assert all("xxx" in text for text in texts[-10:])
    assert transport.summaries == []


async def test_when_stubs_do_not_suffice_the_older_turns_become_a_summary(tmp_path: Path) -> None:
    """BR-144: the model writes the notes; the recent turns stay as they are."""
    transport = MemoryTransport()
    transport.model = lambda _request: (
        finishes()
        if len(transport.requests) > 30
        else calls(("", "echo", json.dumps({"n": len(transport.requests), "t": "y" * 1_500})))
    )
    await run(transport, tmp_path, echo(), context_tokens=14_000)
    assert transport.summaries
    last = transport.requests[-1]
    check_pairing(last.messages)
    assert "what happened so far" in str(last.messages[2].content)
    assert last.messages[1].content == "the task"
