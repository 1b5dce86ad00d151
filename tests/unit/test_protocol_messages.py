"""The wire between a worker and its orchestrator: what it refuses, ignores and keeps."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import worker.protocol
from orchestrator.errors import ModelFailed, Unauthorised
from tool_registry.errors import CallError, PortsideError, RemoteProblem
from worker.protocol.events import EventBatch
from worker.protocol.job import CompletionReport, Credential, JobDescription, JobLimits, TokenAnswer
from worker.protocol.llm import CompleteWithToolsRequest, MediaPart, Message, TextPart
from worker.protocol.model import Answer, Request
from worker.protocol.paths import worker_path
from worker.protocol.problems import STATUS, Problem, ProblemError
from worker.protocol.tools import Catalog, ExecuteAnswer, ExecuteRequest, WireToolOutput

NOW = "2026-11-30T12:00:00Z"
REPO = Path(__file__).parents[2]

DATA: dict[str, dict[str, Any]] = {
    "AgentIdentity": {"name": "coder", "instance_id": "i1", "network": "local"},
    "Catalog": {
        "tools": [{"name": "a", "description": "ő", "parameters": {"z": 1, "a": {"b": 1.0}}}],
        "toolset_instructions": ["one"],
        "policies": {"a": {"read_only": True, "sensitive": ["/k"]}},
        "catalog_version": "sha256:00",
    },
    "CompleteAnswer": {"content": "hi", "finish_reason": "stop", "usage": {"input_tokens": 3}},
    "CompleteRequest": {"messages": [{"role": "user", "content": "hi"}], "temperature": 0.5},
    "CompleteWithToolsAnswer": {
        "finish_reason": "tool_calls",
        "tool_calls": [{"id": "", "name": "a", "arguments": '{"x": 1}'}],
    },
    "CompleteWithToolsRequest": {
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": "1", "name": "a", "arguments": "{}"}]},
            {"role": "tool", "tool_call_id": "1", "content": "no", "is_error": True},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image", "media_type": "image/png", "data": "aGk="},
                ],
            },
        ],
        "tools": [{"name": "a", "description": "", "parameters": {}}],
        "tool_choice": "auto",
    },
    "CompletionAnswer": {"status": "ok"},
    "CompletionReport": {"outcome": "limit", "iterations": 5, "result": {"x": [None]}},
    "ContractData": {"catalog_hash": "a", "request_hash": "a", "tools": 1, "identical": True},
    "Credential": {"env_var": "KEY", "value": "v"},
    "Deliveries": {"deliveries": [{"delivery_id": "d", "kind": "message", "text": "t", "thread_id": "x"}]},
    "Delivery": {"delivery_id": "d", "kind": "cancel", "text": "t"},
    "ExecuteAnswer": {"output": {"result": [1], "cost_usd": "0.10"}, "catalog_version": "sha256:00"},
    "ExecuteRequest": {"tool_name": "github_search", "params": {"query": "hosted worker transport"}},
    "JobDescription": {
        "job_id": "j",
        "title": "t",
        "task": "do",
        "agent": {"name": "coder", "instance_id": "i1", "network": "local"},
        "limits": {"deadline_at": NOW},
        "protocol_version": "1",
    },
    "JobLimits": {"max_iterations": 3, "deadline_at": NOW},
    "LogData": {"level": "info", "text": "x"},
    "MediaPart": {"type": "file", "media_type": "application/pdf", "artifact": "a1"},
    "Message": {"role": "system", "content": "x"},
    "MessageData": {"role": "assistant", "text": "x", "iteration": 1},
    "OutputData": {"stream": "stdout", "text": "x"},
    "Problem": {
        "title": "t",
        "status": 422,
        "code": "invalid_params",
        "detail": "d",
        "errors": [{"pointer": "/a", "rule": "type", "message": "m"}],
    },
    "ProblemError": {"pointer": "/a", "rule": "type", "message": "m", "expected": "e", "got": "g"},
    "ResultData": {"outcome": "completed"},
    "StatusData": {"state": "running"},
    "StatusReport": {"state": "running", "iteration": 0},
    "TextPart": {"type": "text", "text": "x"},
    "TokenAnswer": {"token": "t", "expires_at": NOW},
    "ToolPolicy": {"read_only": True, "timeout_s": 5.5, "sensitive": ["/a"]},
    "ToolResultData": {
        "call_id": "1",
        "tool_name": "a",
        "verdict": "ok",
        "is_error": False,
        "preview": "p",
        "duration_ms": 3,
    },
    "ToolUseData": {"call_id": "1", "tool_name": "a", "params": {"x": 1}, "source": "mcp", "iteration": 1},
    "Usage": {"input_tokens": 1, "output_tokens": 2},
    "WireAdjustment": {"pointer": "/n", "kind": "coerced", "was": "string", "became": "integer"},
    "WireToolCall": {"id": "1", "name": "a", "arguments": "not json"},
    "WireToolDefinition": {"name": "a", "description": "d", "parameters": {"b": 1, "a": 2}},
    "WireToolOutput": {
        "result": None,
        "content": [{"type": "image"}],
        "truncated": {"original_bytes": 9, "shown_bytes": 1},
    },
    "WireTruncation": {"original_bytes": 9, "shown_bytes": 1, "artifact": "a"},
    "WorkspaceInfo": {"sha256": "ab", "size_bytes": 3},
}
EVENT_DATA = {
    "status": "StatusData",
    "message": "MessageData",
    "tool_use": "ToolUseData",
    "tool_result": "ToolResultData",
    "result": "ResultData",
    "log": "LogData",
    "output": "OutputData",
    "contract": "ContractData",
}
EVENTS: list[dict[str, Any]] = [
    {"type": kind, "seq": seq, "at": NOW, "data": DATA[data]}
    for seq, (kind, data) in enumerate(EVENT_DATA.items(), start=1)
]
EXAMPLES: dict[str, dict[str, Any]] = {
    **DATA,
    **{data.replace("Data", "Event"): event for data, event in zip(EVENT_DATA.values(), EVENTS, strict=True)},
    "EventBatch": {"events": EVENTS},
}


def messages() -> dict[str, type[BaseModel]]:
    """Every message of the wire."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(worker.protocol.__path__):
        found |= vars(importlib.import_module(f"worker.protocol.{module.name}"))
    models = {value for value in found.values() if inspect.isclass(value) and issubclass(value, BaseModel)}
    return {one.__name__: one for one in models - {BaseModel, Request, Answer}}


def test_there_is_an_example_of_every_message() -> None:
    assert set(EXAMPLES) == set(messages())


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_message_comes_back_as_it_was_sent(name: str) -> None:
    model = messages()[name]
    message = model.model_validate(EXAMPLES[name])
    assert model.model_validate_json(message.model_dump_json()) == message
    assert model.model_validate(message.model_dump(mode="json")) == message
    if name in DATA:
        assert message.model_dump(mode="json", exclude_unset=True) == DATA[name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_requests_refuse_unknown_fields_and_answers_ignore_them(name: str) -> None:
    """An older worker survives a newer orchestrator; a misspelt request does not pass silently."""
    model = messages()[name]
    extended = {**EXAMPLES[name], "from_the_future": 1}
    if model.model_config.get("extra") == "forbid":
        with pytest.raises(ValidationError, match="from_the_future"):
            model.model_validate(extended)
    else:
        assert issubclass(model, Answer)
        assert model.model_validate(extended) == model.model_validate(EXAMPLES[name])


def test_everything_that_is_only_sent_to_the_orchestrator_is_strict() -> None:
    requests = {name for name, model in messages().items() if issubclass(model, Request)}
    assert {"ExecuteRequest", "CompleteRequest", "CompletionReport", "StatusReport", "EventBatch"} <= requests
    for model in (Message, TextPart, MediaPart):
        assert model.model_config.get("extra") == "forbid"


@pytest.mark.parametrize("name", EXAMPLES)
def test_messages_can_not_be_changed(name: str) -> None:
    message = messages()[name].model_validate(EXAMPLES[name])
    field = next(iter(type(message).model_fields))
    with pytest.raises(ValidationError):
        setattr(message, field, None)


# --- events -------------------------------------------------------------------------------------------


def test_every_event_has_the_data_of_its_type() -> None:
    batch = EventBatch.model_validate({"events": EVENTS})
    for event, (kind, data) in zip(batch.events, EVENT_DATA.items(), strict=True):
        assert event.type == kind
        assert type(event.data).__name__ == data


@pytest.mark.parametrize(
    "event",
    [
        {**EVENTS[0], "type": "log"},
        {**EVENTS[0], "type": "unheard"},
        {**EVENTS[0], "seq": 0},
        {key: value for key, value in EVENTS[0].items() if key != "type"},
        {**EVENTS[0], "data": {**EVENTS[0]["data"], "more": 1}},
    ],
)
def test_an_event_that_is_not_of_its_type_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EventBatch.model_validate({"events": [event]})


def test_a_batch_is_bounded() -> None:
    EventBatch.model_validate({"events": [EVENTS[5]] * 500})
    with pytest.raises(ValidationError):
        EventBatch.model_validate({"events": [EVENTS[5]] * 501})


# --- single messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("success", "outcome"), [(True, "completed"), (False, "failed")])
def test_the_older_spelling_of_an_outcome_is_mapped(success: bool, outcome: str) -> None:
    report = CompletionReport.model_validate({"success": success, "message": "m", "iterations": 2})
    assert (report.outcome, report.message, report.iterations) == (outcome, "m", 2)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"outcome": "won"},
        {"success": True, "outcome": "failed"},
        {"success": "false"},
        {"success": None},
        {"success": 1},
        {"outcome": "completed", "iterations": -1},
        [],
    ],
)
def test_an_outcome_that_is_unclear_is_refused(body: Any) -> None:
    """The text "false" is neither true nor false."""
    with pytest.raises(ValidationError):
        CompletionReport.model_validate(body)


def test_secrets_are_not_in_the_text_of_a_message() -> None:
    """BR-121."""
    assert "hunter2" not in repr(Credential(env_var="KEY", value="hunter2"))
    assert "hunter2" not in str(TokenAnswer(token="hunter2", expires_at=datetime(2026, 1, 1, tzinfo=UTC)))


def test_execute_needs_a_name_and_an_object() -> None:
    assert ExecuteRequest.model_validate({"tool_name": "a"}).params == {}
    bodies: list[dict[str, Any]] = [
        {"params": {}},
        {"tool_name": "a", "params": []},
        {"tool_name": "a", "params": "{}"},
    ]
    for body in bodies:
        with pytest.raises(ValidationError):
            ExecuteRequest.model_validate(body)


def test_defaults_are_what_an_older_peer_means() -> None:
    job = JobDescription.model_validate(EXAMPLES["JobDescription"])
    assert (job.attempt, job.workspace.root, job.limits.max_iterations) == (1, "/workspace", 200)
    assert WireToolOutput.model_validate({}) == WireToolOutput()
    assert Catalog.model_validate({"tools": [], "catalog_version": "v"}).policies == {}
    assert ExecuteAnswer.model_validate(EXAMPLES["ExecuteAnswer"]).output.is_error is False
    with pytest.raises(ValidationError):
        JobLimits.model_validate({"max_iterations": 0, "deadline_at": NOW})
    with pytest.raises(ValidationError):
        CompleteWithToolsRequest.model_validate({"messages": [], "tools": [], "max_tokens": 0})


def test_a_problem_lists_at_most_twenty_errors() -> None:
    error = ProblemError(pointer="", rule="r", message="m")
    body: dict[str, Any] = {"title": "t", "status": 422, "code": "invalid_params", "detail": "d"}
    assert len(Problem(**body, errors=[error] * 20).errors) == 20
    with pytest.raises(ValidationError):
        Problem(**body, errors=[error] * 21)


def test_a_path_belongs_to_its_job() -> None:
    assert worker_path("j-1", "tools/execute") == "/worker/j-1/tools/execute"


# --- codes --------------------------------------------------------------------------------------------


def subclasses(kind: type[PortsideError]) -> Iterator[type[PortsideError]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def literal_codes() -> Iterator[tuple[str, str]]:
    """Every `code="..."` that the code of the product writes down, with its file."""
    for package in ("orchestrator", "worker", "tool_registry", "wasm_tools", "container"):
        for path in (REPO / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _names_a_problem(node):
                    for word in (*node.args[:1], *(one.value for one in node.keywords if one.arg == "code")):
                        if (
                            isinstance(word, ast.Constant)
                            and isinstance(word.value, str)
                            and " " not in word.value
                        ):
                            yield word.value, path.name


def _names_a_problem(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return name in {"RemoteProblem", "problem"}


def test_every_code_of_an_error_has_a_status() -> None:
    sent = ("tool_registry.errors", "orchestrator.errors")  # other packages' own errors never travel
    used = {
        kind.code: kind.__name__
        for kind in subclasses(PortsideError)
        if "code" in vars(kind) and kind.__module__ in sent and not kind.code.startswith("home_")
    }
    assert {"tool_failed", "invalid_params", "rate_limited", "invalid_schema"} <= set(used)
    assert {code: name for code, name in used.items() if code not in STATUS} == {}


def test_every_code_that_is_written_down_has_a_status() -> None:
    own = {"context_overflow"}  # ends the worker's loop; it never travels
    assert [(code, file) for code, file in literal_codes() if code not in {*STATUS, *own}] == []


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("token_missing", 401),
        ("token_invalid", 401),
        ("token_expired", 401),
        ("token_revoked", 401),
        ("job_mismatch", 403),
        ("tool_not_found", 404),
        ("tool_not_hosted", 403),
        ("invalid_params", 422),
        ("approval_required", 403),
        ("rate_limited", 429),
        ("payload_too_large", 413),
        ("tool_timeout", 504),
        ("tool_failed", 502),
        ("tool_unavailable", 503),
        ("idempotency_conflict", 409),
        ("job_not_active", 409),
        ("model_error", 502),
        ("internal", 500),
        ("invalid_request", 400),
    ],
)
def test_the_codes_of_the_worker_api_have_their_statuses(code: str, status: int) -> None:
    assert STATUS[code] == status


def test_errors_that_carry_their_own_code_keep_it() -> None:
    assert Unauthorised("m", "token_expired").code == "token_expired"
    assert RemoteProblem("m", code="tool_timeout", retryable=False).code == "tool_timeout"
    assert isinstance(RemoteProblem("m", code="x", retryable=True), CallError)
    assert ModelFailed("m").code in STATUS
