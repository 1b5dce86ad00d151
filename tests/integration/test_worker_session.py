"""The loop, from catalogue to end, over a transport in memory (PD-10, HW-4)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.local_tools import LocalTool
from tests.fakes.transport import MemoryTransport, calls, finishes, results_of, says
from tests.support.deadline import eventually, within
from tests.support.sessions import echo, remote, run, session_of
from tool_registry.errors import RemoteProblem
from worker.history import check_pairing
from worker.protocol.job import Delivery
from worker.protocol.llm import CompleteWithToolsAnswer, CompleteWithToolsRequest
from worker.protocol.tools import (
    ExecuteRequest,
    ToolPolicy,
    WireToolOutput,
    WireTruncation,
)


async def test_the_first_request_carries_every_advertised_schema_unchanged(tmp_path: Path) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Süche",
        "type": "object",
        "properties": {"z": {"$ref": "#/definitions/z"}, "a": {"type": "number", "multipleOf": 0.1}},
        "definitions": {"z": {"enum": ["ß", 1, None, 1.0]}},
        "x-order": {"b": 1, "a": 2},
    }
    transport = MemoryTransport(finishes())
    transport.tools = [remote("find", schema), remote("other")]
    await run(transport, tmp_path, echo())
    request = transport.requests[0]
    assert [tool.name for tool in request.tools] == ["echo", "find", "finish", "other"]
    carried = next(tool for tool in request.tools if tool.name == "find")
    assert json.dumps(carried.parameters) == json.dumps(schema)
    (contract,) = transport.data("contract")
    assert contract.identical
    assert contract.catalog_hash == contract.request_hash
    assert contract.tools == 2


async def test_a_refused_tool_breaks_the_contract_visibly_and_leaves_its_neighbours(tmp_path: Path) -> None:
    transport = MemoryTransport(finishes())
    transport.tools = [remote("shell"), remote("fine")]
    await run(transport, tmp_path)
    assert [tool.name for tool in transport.requests[0].tools] == ["fine", "finish"]
    (contract,) = transport.data("contract")
    assert not contract.identical
    assert "shell" in transport.logs()


async def test_instructions_are_one_system_message_once_and_the_task_is_the_users(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c", "echo", "{}")), finishes())
    transport.instructions = ["Instructions from gh: be brief"]
    await run(transport, tmp_path, echo())
    for request in transport.requests:
        roles = [message.role for message in request.messages[:3]]
        assert roles == ["system", "system", "user"]
        holding = [m for m in request.messages if "be brief" in str(m.content)]
        assert len(holding) == 1
        assert request.messages[2].content == "the task"


async def test_a_change_of_the_catalogue_reaches_the_next_step_and_repeats_no_instructions(
    tmp_path: Path,
) -> None:
    transport = MemoryTransport()
    transport.tools, transport.instructions = [remote("old")], ["use old well"]

    def model(_request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        if len(transport.requests) == 1:
            transport.tools, transport.instructions = [remote("new")], ["use new well"]
            transport.version = "sha256:2"
            return calls(("c", "echo", "{}"))
        return finishes()

    transport.model = model
    await run(transport, tmp_path, echo())
    assert [tool.name for tool in transport.requests[1].tools] == ["echo", "finish", "new"]
    assert "use new well" not in str(transport.requests[1].messages)
    assert transport.known_versions == [None, "sha256:1", "sha256:1"]
    assert "added: new; removed: old" in transport.logs()


async def test_without_a_catalogue_the_job_fails_and_says_so(tmp_path: Path) -> None:
    transport = MemoryTransport()
    transport.catalog_error = RemoteProblem("broken", code="internal", retryable=False)
    end = await run(transport, tmp_path)
    assert (end.outcome, transport.requests) == ("failed", [])
    assert end.reason is not None
    assert "catalogue" in end.reason


async def test_a_proxy_call_has_a_key_of_attempt_and_call_and_its_own_time(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c9", "search", '{"q": "x"}')))
    transport.tools = [remote("search")]
    transport.policies = {"search": ToolPolicy(timeout_s=7.0, read_only=True)}
    await run(transport, tmp_path)
    ((key, request, timeout_s),) = transport.executed
    assert (key, request.params, timeout_s) == ("1:c9", {"q": "x"}, 7.0)
    assert results_of(transport.requests[1])[0].content == "ran"


async def test_the_reason_of_a_refused_remote_call_reaches_the_model_in_the_same_turn(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c", "search", "{}")))
    transport.tools = [remote("search")]

    async def refuse(_request: ExecuteRequest) -> WireToolOutput:
        raise RemoteProblem("the index is gone", code="tool_failed", retryable=False, hint="rebuild it")

    transport.remote = refuse
    await run(transport, tmp_path)
    (result,) = results_of(transport.requests[1])
    assert result.is_error
    assert "the index is gone" in str(result.content)
    assert "rebuild it" in str(result.content)


async def test_a_shortened_remote_output_is_saved_whole_and_its_path_named(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c", "search", "{}")))
    transport.tools = [remote("search")]
    transport.artifacts = {"art-1": b"whole " * 500_000}

    async def big(_request: ExecuteRequest) -> WireToolOutput:
        cut = WireTruncation(original_bytes=3_000_000, shown_bytes=10, artifact="art-1")
        return WireToolOutput(result="head [...; the whole is artifact art-1 ...] tail", truncated=cut)

    transport.remote = big
    await run(transport, tmp_path)
    path = tmp_path / "out" / "art-1"
    assert path.read_bytes() == transport.artifacts["art-1"]
    assert str(path) in str(results_of(transport.requests[1])[0].content)


async def test_a_long_local_output_is_kept_whole_in_a_file(tmp_path: Path) -> None:
    async def much(_params: dict[str, Any]) -> str:
        return "line\n" * 50_000

    transport = MemoryTransport(calls(("c7", "much", "{}")))
    await run(transport, tmp_path, LocalTool("much", much))
    assert (tmp_path / "out" / "c7").read_text() == "line\n" * 50_000
    shown = str(results_of(transport.requests[1])[0].content)
    assert len(shown) < 70_000
    assert str(tmp_path / "out" / "c7") in shown


async def test_nothing_of_a_cut_answer_runs_and_every_call_is_answered(tmp_path: Path) -> None:
    """BR-138: a complete call beside a cut one does not run either, and the model hears why."""
    ran = echo("read_it", read_only=True)
    cut = calls(
        ("a", "read_it", "{}"), ("b", "read_it", '{"content": "def f():\\n  x'), finish_reason="length"
    )
    transport = MemoryTransport(cut)
    end = await run(transport, tmp_path, ran)
    assert ran.contexts == []
    results = results_of(transport.requests[1])
    assert [one.tool_call_id for one in results] == ["a", "b"]
    assert all("output limit" in str(one.content) for one in results)
    assert end.outcome == "completed"


@pytest.mark.parametrize("finish_reason", ["tool_calls", "stop"])
async def test_unterminated_arguments_count_as_cut_whatever_the_finish_reason(
    tmp_path: Path, finish_reason: str
) -> None:
    """BR-138: unterminated JSON is a cut answer."""
    ran = echo()
    transport = MemoryTransport(
        calls(("a", "echo", "{}"), ("b", "echo", '{"x": "y'), finish_reason=finish_reason)
    )
    await run(transport, tmp_path, ran)
    assert ran.contexts == []


async def test_cut_answers_without_end_fail_the_job_with_that_reason(tmp_path: Path) -> None:
    """BR-138: repeats are bounded."""
    transport = MemoryTransport()
    transport.model = lambda _request: calls(("a", "echo", '{"x": "'), finish_reason="length")
    end = await run(transport, tmp_path, echo())
    assert end.outcome == "failed"
    assert end.reason is not None
    assert "output limit" in end.reason
    assert len(transport.requests) == 4


async def test_a_cut_answer_with_thousands_of_calls_is_stored_short(tmp_path: Path) -> None:
    """BR-138: 14,000 calls are not answered one by one."""
    many = calls(*[(f"c{i}", "echo", "{}") for i in range(14_000)], finish_reason="length")
    transport = MemoryTransport(many)
    await run(transport, tmp_path, echo())
    assert len(transport.requests[1].messages) < 30
    check_pairing(transport.requests[1].messages)


async def test_a_cut_text_is_continued_and_joined(tmp_path: Path) -> None:
    """BR-138: a cut text answer goes on where it stopped."""
    transport = MemoryTransport(says("The ans", "length"), says("wer is 4."))
    end = await run(transport, tmp_path)
    assert (end.outcome, end.message) == ("completed", "The answer is 4.")


async def test_malformed_arguments_are_an_error_result_and_the_history_stays_json(tmp_path: Path) -> None:
    """BR-140: the good call runs, the bad one is answered, and what is sent back is valid."""
    ran = echo()
    transport = MemoryTransport(calls(("c1", "echo", "{command: ls}"), ("c2", "echo", '{"command": "pwd"}')))
    await run(transport, tmp_path, ran)
    assert len(ran.contexts) == 1
    again = transport.requests[1]
    for message in again.messages:
        for made in message.tool_calls:
            assert isinstance(json.loads(made.arguments), dict)
    first, second = results_of(again)
    assert first.is_error
    assert "not valid JSON" in str(first.content)
    assert not second.is_error


@pytest.mark.parametrize("arguments", ["", "   ", "null", "{}"])
async def test_empty_arguments_run_as_an_empty_object(tmp_path: Path, arguments: str) -> None:
    """BR-081: the history then holds the text `{}`."""
    ran = echo()
    transport = MemoryTransport(calls(("c", "echo", arguments)))
    await run(transport, tmp_path, ran)
    assert len(ran.contexts) == 1
    assert transport.requests[1].messages[-2].tool_calls[0].arguments == "{}"


async def test_results_go_back_in_call_order_one_per_id(tmp_path: Path) -> None:
    """BR-141: slow, failing, repeated and empty ids; each call has exactly one result, in call order."""
    release = asyncio.Event()

    async def slow(_params: dict[str, Any]) -> str:
        await release.wait()
        return "slow"

    async def fast(_params: dict[str, Any]) -> str:
        release.set()
        return "fast"

    async def broken(_params: dict[str, Any]) -> str:
        raise KeyError("x")

    transport = MemoryTransport(
        calls(
            ("a", "slow", "{}"),
            ("b", "fast", "{}"),
            ("c", "broken", "{}"),
            ("b", "fast", "{}"),
            ("", "fast", "{}"),
        )
    )
    tools = [
        LocalTool("slow", slow, read_only=True),
        LocalTool("fast", fast, read_only=True),
        LocalTool("broken", broken, read_only=True),
    ]
    await run(transport, tmp_path, *tools)
    messages = transport.requests[1].messages
    check_pairing(messages)
    made = messages[-6].tool_calls
    assert len({one.id for one in made}) == 5
    results = messages[-5:]
    assert [one.tool_call_id for one in results] == [one.id for one in made]
    assert [one.content for one in results if not one.is_error] == ["slow", "fast", "fast", "fast"]
    assert "KeyError" not in str(results[2].content)


async def test_calls_with_effects_run_in_order(tmp_path: Path) -> None:
    """BR-141: two writes of one answer never overlap."""
    log: list[str] = []

    async def write(params: dict[str, Any]) -> str:
        log.append(f"start {params['n']}")
        await asyncio.sleep(0)
        log.append(f"end {params['n']}")
        return "ok"

    transport = MemoryTransport(calls(("a", "write", '{"n": 1}'), ("b", "write", '{"n": 2}')))
    await run(transport, tmp_path, LocalTool("write", write))
    assert log == ["start 1", "end 1", "start 2", "end 2"]


async def test_a_cancel_ends_the_running_tool_and_the_job(tmp_path: Path) -> None:
    """BR-141: on a cancel the tool is stopped and its call's end is in the timeline, once."""
    started, stopped = asyncio.Event(), asyncio.Event()

    async def hang(_params: dict[str, Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    transport = MemoryTransport(calls(("a", "hang", "{}"), ("b", "hang", "{}")))
    session = session_of(transport, tmp_path)
    running = asyncio.create_task(session.run([LocalTool("hang", hang)]))
    await within(10.0, started.wait())
    transport.pending = [Delivery(delivery_id="d1", kind="cancel", text="changed my mind")]
    end = await within(10.0, running)
    await session.events.flush(5.0)
    assert (end.outcome, end.reason) == ("cancelled", "changed my mind")
    assert stopped.is_set()
    assert [data.verdict for data in transport.data("tool_result")] == ["cancelled"]
    assert set(transport.acknowledged) == {"d1"}


@pytest.mark.parametrize(
    ("written", "ran"),
    [("Echo", True), ("functions.echo", True), ("echo ", True), ("ech", False), ("", False)],
)
async def test_trivial_forms_of_a_name_are_mapped_and_no_others(
    tmp_path: Path, written: str, ran: bool
) -> None:
    """BR-142: case, blanks and a known prefix; anything else is an error result."""
    tool = echo()
    transport = MemoryTransport(calls(("c", written, "{}")))
    await run(transport, tmp_path, tool)
    assert bool(tool.contexts) is ran
    (result,) = results_of(transport.requests[1])
    assert result.is_error is not ran
    stored = transport.requests[1].messages[-2].tool_calls[0].name
    assert stored.replace("_", "").isalnum()


async def test_an_unknown_name_is_answered_with_near_names(tmp_path: Path) -> None:
    """BR-142: a real name that holds the written one is suggested."""
    transport = MemoryTransport(calls(("c", "search_files", "{}")))
    await run(transport, tmp_path, echo("fs__search_files"))
    assert "fs__search_files" in str(results_of(transport.requests[1])[0].content)


async def test_a_prompt_is_taken_in_between_steps_and_acknowledged(tmp_path: Path) -> None:
    transport = MemoryTransport()
    seen = asyncio.Event()

    async def wait(_params: dict[str, Any]) -> str:
        transport.pending = [Delivery(delivery_id="d1", kind="prompt", text="also do this")]
        await asyncio.sleep(0.1)
        seen.set()
        return "waited"

    transport.model = lambda _request: finishes() if seen.is_set() else calls(("c", "wait", "{}"))
    await run(transport, tmp_path, LocalTool("wait", wait))
    last = transport.requests[-1].messages[-1]
    assert (last.role, last.content) == ("user", "also do this")
    assert set(transport.acknowledged) == {"d1"}


async def test_what_the_model_was_never_shown_is_not_acknowledged(tmp_path: Path) -> None:
    """BR-123: the request that would have shown it failed, so it is for whoever comes next."""
    transport = MemoryTransport()
    transport.pending = [Delivery(delivery_id="d1", kind="message", text="from a peer")]
    asked: list[str] = []

    def model(request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        asked.append(str(request.messages[-1].content))
        if asked[-1] == "from a peer":
            raise RemoteProblem("no such model", code="model_error", retryable=False)
        return calls(("c", "nap", "{}"))

    async def nap(_params: dict[str, Any]) -> str:
        await asyncio.sleep(0.05)
        return f"nap {len(asked)}"

    transport.model = model
    end = await run(transport, tmp_path, LocalTool("nap", nap))
    assert end.outcome == "failed"
    assert asked[-1] == "from a peer"
    assert transport.acknowledged == []


async def test_a_prompt_that_comes_with_the_final_text_is_answered_first(tmp_path: Path) -> None:
    transport = MemoryTransport()

    async def model(_request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        if len(transport.requests) > 1:
            return says("second")
        transport.pending = [Delivery(delivery_id="d1", kind="prompt", text="wait")]
        await asyncio.sleep(0.2)
        return says("first")

    transport.model = model
    end = await run(transport, tmp_path)
    assert (end.message, len(transport.requests)) == ("second", 2)


async def test_a_job_that_is_over_ends_the_run(tmp_path: Path) -> None:
    transport = MemoryTransport(RemoteProblem("ended", code="job_not_active", retryable=False))
    end = await run(transport, tmp_path)
    assert (end.outcome, end.reason) == ("cancelled", "ended")


async def test_secrets_do_not_reach_the_timeline(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c", "login", '{"password": "hunter22", "user": "me"}')))
    transport.tools = [remote("login")]
    transport.policies = {"login": ToolPolicy(sensitive=["/password"])}
    await run(transport, tmp_path)
    assert transport.executed[0][1].params["password"] == "hunter22"
    assert "hunter22" not in str(transport.data("tool_use"))


async def test_every_event_is_stored_once_in_order(tmp_path: Path) -> None:
    transport = MemoryTransport(calls(("c", "echo", "{}"), text="let me see"), finishes("all good"))
    await run(transport, tmp_path, echo())
    kinds = [event.type for event in transport.stored]
    assert [event.seq for event in transport.stored] == list(range(1, len(kinds) + 1))
    assert kinds == ["contract", "message", "tool_use", "tool_result", "tool_use", "tool_result"]
    await eventually(lambda: transport.statuses[-1].iteration == 2)
