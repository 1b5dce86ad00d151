"""The one pipeline: its steps, their order, and what each of them leaves behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.registry_tools import ArtifactShelf, CallStand, RegistryTool
from tool_registry.context import ToolContext
from tool_registry.errors import (
    ApprovalRequired,
    CallError,
    InvalidParams,
    Outcome,
    RateLimited,
    ToolFailed,
    ToolNotFound,
    ToolNotHosted,
    ToolTimeout,
    ToolUnavailable,
    Violation,
)
from tool_registry.execution import REFUSALS
from tool_registry.output import ToolOutput, Truncation
from tool_registry.redaction import Redactor
from tool_registry.registry import Entry
from tool_registry.tool import Approval, RateLimit, ToolDomain, ToolSource
from tool_registry.visibility import HiddenReason

SECRET = "hunter2-and-more"
QUERY: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "lang": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}


def always(_params: Mapping[str, Any]) -> bool:
    return True


def dangerous(params: Mapping[str, Any]) -> bool:
    return params.get("dangerous") is True


def returning(result: Any, name: str = "tool", **more: Any) -> RegistryTool:
    async def act(_params: dict[str, Any], _context: ToolContext) -> Any:
        return result

    return RegistryTool(name, act, **more)


def raising(error: BaseException, **more: Any) -> RegistryTool:
    async def act(_params: dict[str, Any], _context: ToolContext) -> Any:
        raise error

    return RegistryTool("tool", act, **more)


async def forever(_params: dict[str, Any], _context: ToolContext) -> Any:
    await asyncio.Event().wait()


# --- which calls run -----------------------------------------------------------------------------------


async def test_a_fitting_call_reaches_the_tool_unchanged_and_is_audited() -> None:
    tool = RegistryTool(schema=QUERY)
    stand = CallStand(tool)
    output = await stand.call(q="x")
    assert output.result == {"q": "x"}
    assert tool.calls == [{"q": "x"}]
    (record,) = stand.audit
    assert (record.tool_name, record.verdict, record.rules) == ("tool", "ok", ())
    assert (record.job_id, record.agent, record.network) == ("job-1", "coder", "local")
    assert (record.call_id, record.source) == ("call-1", "mcp")
    assert record.at == stand.clock.start


async def test_a_tool_that_is_missing_is_named_with_its_nearest_neighbour() -> None:
    stand = CallStand(RegistryTool("github_search"))
    with pytest.raises(ToolNotFound, match="did you mean 'github_search'"):
        await stand.call("github_serch")
    assert stand.audit[0].verdict == "tool_not_found"


async def test_arguments_that_do_not_fit_never_reach_the_tool() -> None:
    tool = RegistryTool(schema=QUERY)
    stand = CallStand(tool)
    with pytest.raises(InvalidParams) as caught:
        await stand.call(qq="x")
    assert tool.calls == []
    assert {one.rule for one in caught.value.violations} == {"required", "additionalProperties"}
    assert caught.value.outcome is Outcome.NOT_RUN
    assert set(stand.audit[0].rules) == {"required", "additionalProperties"}


async def test_an_optional_null_that_the_schema_refuses_is_dropped_before_the_tool() -> None:
    """BR-078: the tool, and the audit record, see the arguments as they were run."""
    tool = RegistryTool(schema=QUERY)
    stand = CallStand(tool)
    await stand.call(q="x", lang=None)
    assert tool.calls == [{"q": "x"}]
    assert stand.audit[0].params == {"q": "x"}


async def test_a_proxy_is_not_validated_where_it_only_stands_in() -> None:
    tool = RegistryTool(schema=QUERY, source=ToolSource.PROXY)
    await CallStand(tool).call(anything=1)
    assert tool.calls == [{"anything": 1}]


async def test_checks_come_in_order_and_the_first_one_that_fails_answers() -> None:
    """Visibility before the schema, the schema before approval, approval before the rate."""
    tool = RegistryTool(
        schema=QUERY, approval=Approval.BY_PARAMS, needs_approval=always, rate_limit=RateLimit(1, 60)
    )
    stand = CallStand(tool, hosted=True)
    with pytest.raises(InvalidParams):
        await stand.call(wrong=1)
    with pytest.raises(ApprovalRequired):
        await stand.call(q="x")
    granted = stand.granting("tool")
    assert (await stand.call(using=granted, q="x")).result == {"q": "x"}  # no refusal used up the rate
    with pytest.raises(RateLimited):
        await stand.call(using=granted, q="x")
    stand.registry.set_enabled("tool", enabled=False)
    with pytest.raises(ToolNotHosted):
        await stand.call(wrong=1)


async def test_approval_always_runs_only_with_a_grant() -> None:
    tool = RegistryTool(approval=Approval.ALWAYS)
    stand = CallStand(tool)
    with pytest.raises(ApprovalRequired, match="approval") as caught:
        await stand.call()
    assert "--tool-grant tool" in str(caught.value.hint)
    await stand.call(using=stand.granting("tool"))
    assert len(tool.calls) == 1


async def test_a_hosted_call_of_a_gated_tool_is_refused_as_hidden() -> None:
    stand = CallStand(RegistryTool(approval=Approval.ALWAYS), hosted=True)
    with pytest.raises(ToolNotHosted) as caught:
        await stand.call()
    assert caught.value.reason == HiddenReason.NOT_GRANTED
    await stand.call(using=stand.granting("tool"))


async def test_approval_by_params_asks_for_the_dangerous_ones_only() -> None:
    tool = RegistryTool(approval=Approval.BY_PARAMS, needs_approval=dangerous)
    stand = CallStand(tool, hosted=True)
    await stand.call(dangerous=False)
    with pytest.raises(ApprovalRequired):
        await stand.call(dangerous=True)
    assert tool.calls == [{"dangerous": False}]


async def test_the_rate_is_counted_for_each_job_and_tool_alone() -> None:
    stand = CallStand(
        RegistryTool("a", rate_limit=RateLimit(2, 60)), RegistryTool("b", rate_limit=RateLimit(2, 60))
    )
    other_job = replace(stand.context, job_id="job-2")
    await stand.call("a")
    await stand.call("a")
    with pytest.raises(RateLimited) as caught:
        await stand.call("a")
    assert caught.value.retryable
    assert caught.value.retry_after_s == pytest.approx(30.0)
    await stand.call("b")
    await stand.call("a", using=other_job)
    stand.clock.elapsed_s += 30
    await stand.call("a")


async def test_who_is_refused_without_end_costs_nothing_after_a_while() -> None:
    """PD-75: neither a check nor a record; others go on, and so does it after a pause."""
    stand = CallStand(RegistryTool("a", schema=QUERY), hosted=True)
    other_job = replace(stand.context, job_id="job-2")
    for number in range(REFUSALS.calls):
        with pytest.raises(ToolNotFound if number % 2 else InvalidParams):
            await stand.call("none" if number % 2 else "a")
    for name in ("none", "a"):
        with pytest.raises(RateLimited, match=r"were refused; wait 0\.2 s") as caught:
            await stand.call(name)
        assert (caught.value.retryable, caught.value.retry_after_s) == (True, pytest.approx(0.2))
    assert len(stand.audit) == REFUSALS.calls
    assert (await stand.call("a", using=other_job, q="x")).result == {"q": "x"}
    stand.clock.elapsed_s += 0.2
    assert (await stand.call("a", q="x")).result == {"q": "x"}


@pytest.mark.parametrize("calls_per_s", [(0, 60.0), (-1, 60.0), (1, 0.0), (1, float("inf"))])
def test_a_rate_limit_that_lets_nothing_pass_is_refused(calls_per_s: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="rate limit"):
        RateLimit(*calls_per_s)


async def test_what_is_asked_before_the_run_can_end_the_call() -> None:
    class StopHere(Exception):
        pass

    async def stop(entry: Entry) -> None:
        assert entry.name == "tool"
        raise StopHere

    tool = RegistryTool()
    stand = CallStand(tool)
    with pytest.raises(StopHere):
        await stand.executor.execute("tool", {}, stand.context, before_run=stop)
    assert tool.calls == []
    assert stand.audit[0].verdict == "not_run"


async def test_a_disabled_tool_is_refused_where_nothing_is_hosted_too() -> None:
    stand = CallStand(RegistryTool())
    stand.registry.set_enabled("tool", enabled=False)
    with pytest.raises(ToolNotHosted, match="disabled"):
        await stand.call()


async def test_a_container_tool_can_not_be_reached_through_the_hosted_pipeline() -> None:
    tool = RegistryTool("shell", source=ToolSource.LOCAL, domain=ToolDomain.CONTAINER)
    with pytest.raises(ToolNotHosted) as caught:
        await CallStand(tool, hosted=True).call("shell")
    assert caught.value.reason == HiddenReason.CONTAINER_ONLY
    assert tool.calls == []


# --- time and cancellation ----------------------------------------------------------------------------


async def test_a_timeout_cancels_the_tool_and_waits_until_it_has_ended() -> None:
    ended: list[str] = []

    async def slow(_params: dict[str, Any], _context: ToolContext) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    stand = CallStand(RegistryTool("tool", slow, timeout_s=0.05))
    with pytest.raises(ToolTimeout) as caught:
        await stand.call()
    assert ended == ["cleaned up"]
    assert caught.value.outcome is Outcome.UNKNOWN
    assert stand.audit[0].verdict == "tool_timeout"
    assert stand.stuck == []


async def test_a_timeout_of_a_tool_that_only_reads_has_had_no_effect() -> None:
    stand = CallStand(RegistryTool("tool", forever, timeout_s=0.02, read_only=True))
    with pytest.raises(ToolTimeout) as caught:
        await stand.call()
    assert caught.value.outcome is Outcome.FAILED


async def test_a_tool_that_ignores_its_cancellation_is_reported_and_holds_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tool_registry.execution._CANCEL_GRACE_S", 0.05)
    release = asyncio.Event()

    async def stubborn(_params: dict[str, Any], _context: ToolContext) -> Any:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("long after everybody left")

    stand = CallStand(RegistryTool("tool", stubborn, timeout_s=0.02))
    async with asyncio.timeout(5):
        with pytest.raises(ToolTimeout):
            await stand.call()
    assert [entry.name for entry in stand.stuck] == ["tool"]
    release.set()


async def test_a_caller_that_is_cancelled_takes_the_tool_with_it() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def act(_params: dict[str, Any], _context: ToolContext) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    stand = CallStand(RegistryTool("tool", act))
    call = asyncio.ensure_future(stand.call())
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cancelled.is_set()
    assert stand.audit[0].verdict == "cancelled"


async def test_a_callers_deadline_shortens_the_tools_own() -> None:
    stand = CallStand(RegistryTool("tool", forever, timeout_s=3600))
    stand.clock.elapsed_s = 100.0
    async with asyncio.timeout(5):
        with pytest.raises(ToolTimeout, match=r"0\.02 s"):
            await stand.call(using=replace(stand.context, deadline=100.02))


async def test_a_call_whose_time_is_over_already_is_not_run() -> None:
    tool = RegistryTool()
    stand = CallStand(tool)
    stand.clock.elapsed_s = 100.0
    with pytest.raises(ToolTimeout) as caught:
        await stand.call(using=replace(stand.context, deadline=99.0))
    assert caught.value.outcome is Outcome.NOT_RUN
    assert tool.calls == []


async def test_the_tool_is_told_its_deadline() -> None:
    tool = RegistryTool(timeout_s=7)
    stand = CallStand(tool)
    stand.clock.elapsed_s = 10.0
    await stand.call()
    assert tool.contexts[0].deadline == pytest.approx(17.0)


async def test_a_tool_that_was_cancelled_by_its_own_side_has_failed_and_the_caller_goes_on() -> None:
    with pytest.raises(ToolFailed) as caught:
        await CallStand(raising(asyncio.CancelledError())).call()
    assert caught.value.cause == "cancelled"


# --- failures -----------------------------------------------------------------------------------------


async def test_a_crash_of_a_tool_is_a_bug_that_is_audited_and_not_hidden() -> None:
    stand = CallStand(raising(ZeroDivisionError("boom")))
    with pytest.raises(ZeroDivisionError):
        await stand.call()
    assert stand.audit[0].verdict == "internal"


async def test_an_answer_that_is_no_json_is_a_bug_that_is_audited_too() -> None:
    stand = CallStand(returning({"when": object()}))
    with pytest.raises(TypeError):
        await stand.call()
    assert stand.audit[0].verdict == "internal"


async def test_a_failure_the_tool_reports_is_a_result() -> None:
    stand = CallStand(returning(ToolOutput("no such repository", is_error=True)))
    output = await stand.call()
    assert output.is_error
    assert stand.audit[0].verdict == "error"


@pytest.mark.parametrize("kind", [ToolFailed, ToolUnavailable])
async def test_the_text_of_a_failed_call_holds_no_known_secret(kind: type[CallError]) -> None:
    """BR-121: message, hint, cause and violations are cleaned; code and outcome stay."""
    error = kind(
        f"GET https://x/?key={SECRET} failed",
        hint=f"is {SECRET} right?",
        cause=f"http {SECRET}",
        violations=(Violation(f"/{SECRET}", "type", f"not {SECRET}", f"no {SECRET}", f"string {SECRET}"),),
    )
    stand = CallStand(raising(error), redactor=Redactor({"API_KEY": SECRET}))
    with pytest.raises(kind) as caught:
        await stand.call()
    found = caught.value
    told = [found.message, str(found), repr(found), str(found.hint), str(found.cause), str(found.violations)]
    assert not any(SECRET in text for text in told)
    assert all("[redacted:API_KEY]" in text for text in told)
    assert (found.code, found.outcome) == (kind.code, kind.default_outcome)


async def test_the_text_of_a_failed_call_is_bounded_and_can_be_sent() -> None:
    stand = CallStand(raising(ToolFailed("half a pair \ud800 " + "x" * 100_000)))
    with pytest.raises(ToolFailed) as caught:
        await stand.call()
    assert len(caught.value.message.encode()) <= 4_000


# --- results ------------------------------------------------------------------------------------------


async def test_secrets_are_taken_out_of_every_part_of_an_output() -> None:
    """BR-121: results, keys, blocks and raw answers; the rest of each text stays."""
    output = ToolOutput(
        {"env": f"KEY={SECRET};", SECRET: [SECRET]},
        content=({"type": "resource", "text": SECRET},),
        raw={"raw": SECRET},
    )
    stand = CallStand(returning(output), redactor=Redactor({"API_KEY": SECRET}))
    shown = await stand.call()
    assert SECRET not in json.dumps(shown.as_json())
    assert shown.result["env"] == "KEY=[redacted:API_KEY];"
    assert shown.content[0]["text"] == shown.raw["raw"] == "[redacted:API_KEY]"


async def test_the_audit_masks_sensitive_arguments_and_known_secrets() -> None:
    stand = CallStand(
        RegistryTool(sensitive=("/password", "/auth/token")), redactor=Redactor({"API_KEY": SECRET})
    )
    await stand.call(password="p", auth={"token": "t", "user": "u"}, note=f"use {SECRET}")
    assert stand.audit[0].params == {
        "password": "[masked]",
        "auth": {"token": "[masked]", "user": "u"},
        "note": "use [redacted:API_KEY]",
    }


async def test_a_refused_call_never_shows_a_sensitive_argument() -> None:
    tool = RegistryTool(
        schema={
            "type": "object",
            "properties": {
                "pin": {"type": "integer"},
                "auth": {"type": "object", "properties": {"token": {"type": "integer"}}},
                "shown": {"type": "integer"},
            },
        },
        sensitive=("/pin", "/auth/token"),
    )
    stand = CallStand(tool)
    with pytest.raises(InvalidParams) as caught:
        await stand.call(pin="12-34", auth={"token": "abc"}, shown="plain")
    told = f"{caught.value} {caught.value.violations}"
    assert "12-34" not in told
    assert "abc" not in told
    assert {one.pointer: one.got for one in caught.value.violations} == {
        "/pin": None,
        "/auth/token": None,
        "/shown": 'string "plain"',
    }


async def test_a_large_result_is_kept_whole_and_shown_by_its_ends() -> None:
    """BR-065."""
    text = "HEAD\n" + "row\n" * 500_000 + "TAIL"
    shelf = ArtifactShelf()
    stand = CallStand(returning(text), keeper=shelf, max_output_bytes=8_192)
    output = await stand.call()
    assert output.truncated is not None
    assert output.truncated.original_bytes == len(text)
    assert shelf.kept[str(output.truncated.artifact)] == text.encode()
    assert len(output.result.encode()) <= 8_192
    assert output.result.startswith("HEAD\n")
    assert output.result.endswith("TAIL")
    assert str(output.truncated.artifact) in output.result
    assert stand.audit[0].output_bytes == len(output.result.encode())


async def test_a_large_result_is_cut_for_good_where_nothing_can_be_kept() -> None:
    output = await CallStand(returning("x" * 20_000), max_output_bytes=4_096).call()
    assert output.truncated == Truncation(20_000, output.truncated.shown_bytes if output.truncated else 0)
    assert "left out" in output.result


async def test_a_large_structured_result_is_cut_as_text() -> None:
    shelf = ArtifactShelf()
    rows = [{"row": number, "név": "ő"} for number in range(5_000)]
    output = await CallStand(
        returning(ToolOutput(rows, raw=rows)), keeper=shelf, max_output_bytes=4_096
    ).call()
    assert isinstance(output.result, str)
    assert output.raw is None
    assert json.loads(next(iter(shelf.kept.values()))) == rows


async def test_what_was_cut_before_keeps_its_true_size_and_artifact() -> None:
    before = Truncation(1_000_000, 5_000, "elsewhere")
    stand = CallStand(returning(ToolOutput("x" * 6_000, truncated=before)), max_output_bytes=4_096)
    output = await stand.call()
    assert output.truncated is not None
    assert (output.truncated.original_bytes, output.truncated.artifact) == (1_000_000, "elsewhere")


async def test_a_block_beyond_the_bound_becomes_an_artifact_and_the_others_stay() -> None:
    """BR-065: one image of 30 MB."""
    shelf = ArtifactShelf()
    small = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    output = ToolOutput("see", content=(small, {"type": "image", "data": "x" * 30_000_000}, small))
    shown = await CallStand(returning(output), keeper=shelf).call()
    assert shown.content[0] == shown.content[2] == small
    assert shown.content[1]["type"] == "omitted"
    assert shown.content[1]["was"] == "image"
    assert len(shelf.kept[shown.content[1]["artifact"]]) == shown.content[1]["size_bytes"] > 30_000_000


async def test_a_crowd_of_small_blocks_is_bounded_too() -> None:
    """BR-065: 50,000 blocks of 100 bytes."""
    shelf = ArtifactShelf()
    blocks = tuple({"type": "resource_link", "uri": f"file:///{n:080}"} for n in range(50_000))
    shown = await CallStand(returning(ToolOutput("see", content=blocks)), keeper=shelf).call()
    assert len(shown.content) == 101
    assert shown.content[:100] == blocks[:100]
    assert json.loads(shelf.kept[shown.content[-1]["artifact"]]) == list(blocks[100:])


async def test_raw_content_beyond_the_bound_is_left_out() -> None:
    shown = await CallStand(returning(ToolOutput("small", raw={"big": "x" * 6_000_000}))).call()
    assert (shown.result, shown.raw) == ("small", None)


async def test_halves_of_surrogate_pairs_do_not_stop_an_answer() -> None:
    """BR-082: what UTF-8 can't carry is replaced, in every part of an output; true pairs stay."""
    half = "a\ud800b"
    output = ToolOutput(
        {"r": half, "ok": "😀"},
        content=({"type": "x", "text": half}, {"type": "y", "text": "😀"}),
        raw=[half],
    )
    shown = await CallStand(returning(output)).call()
    json.dumps(shown.as_json(), ensure_ascii=False).encode()
    assert shown.result == {"r": "a?b", "ok": "😀"}
    assert (shown.content[0]["text"], shown.content[1]["text"], shown.raw) == ("a?b", "😀", ["a?b"])


async def test_the_size_in_the_audit_is_in_bytes() -> None:
    stand = CallStand(returning("őőő"))
    await stand.call()
    assert stand.audit[0].output_bytes == 6


async def test_the_duration_is_measured_by_the_executors_clock() -> None:
    stand = CallStand()

    async def act(_params: dict[str, Any], _context: ToolContext) -> Any:
        stand.clock.elapsed_s += 1.5
        return ToolOutput("x", duration_ms=99)

    stand.registry.register(RegistryTool("tool", act))
    assert (await stand.call()).duration_ms == 1_500
    assert stand.audit[0].duration_ms == 1_500
