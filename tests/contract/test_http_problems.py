"""PD-4: every error in one shape, whatever was asked and whoever refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from starlette.types import Message

from orchestrator.http.bodies import MAX_BODY_BYTES
from orchestrator.ports.errors import StoreUnavailable
from orchestrator.ports.models import ModelError
from tests.support.orchestrator import Wired, http_over, problem

LIMIT = MAX_BODY_BYTES
ASK = {"messages": [{"role": "user", "content": "hi"}]}


async def chunked(size: int) -> AsyncIterator[bytes]:
    yield b'{"task": "'
    for _ in range(size // 65_536 + 1):
        yield b"a" * 65_536
    yield b'"}'


async def test_unknown_paths_and_methods_are_problems(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    for method, path, status, code in (
        ("GET", "/", 404, "not_found"),
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", f"/worker/{worker.job_id}", 404, "not_found"),
        ("GET", f"/worker/{worker.job_id}/job/", 404, "not_found"),
        ("GET", f"/worker/{worker.job_id}/network/whoami", 404, "not_found"),
        ("DELETE", "/health", 405, "invalid_request"),
        ("POST", f"/worker/{worker.job_id}/job", 405, "invalid_request"),
    ):
        answer = await orchestrator.operator.request(method, path)
        assert (answer.status_code, problem(answer)["code"]) == (status, code), path
    assert (await orchestrator.operator.delete("/health")).headers["allow"] == "GET"


async def test_unknown_fields_are_refused_with_a_pointer_on_every_route(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    at = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    log = {"type": "log", "seq": 1, "at": at, "data": {"level": "info", "text": "a"}}
    bodies: dict[str, Any] = {
        "status": {"state": "running", "iteration": 1},
        "events": {"events": [log]},
        "llm/complete": ASK,
        "llm/complete_with_tools": ASK | {"tools": []},
        "complete": {"outcome": "failed"},
    }
    for name, body in bodies.items():
        answer = await worker.post(name, body | {"surprise": 1})
        refused = problem(answer)
        assert (answer.status_code, refused["code"]) == (400, "invalid_request"), name
        assert "/surprise" in [one["pointer"] for one in refused["errors"]], name
    nested = await worker.post("events", {"events": [log | {"more": 1}]})
    assert problem(nested)["errors"][0]["pointer"].endswith("/more")
    hot = await worker.post("tools/execute", {"tool_name": "echo", "params": {}, "surprise": 1})
    assert (hot.status_code, problem(hot)["code"]) == (400, "invalid_request")
    assert "surprise" in problem(hot)["detail"]
    for path in ("jobs", "jobs/x/prompt", "tools/check", "tools/echo/call", "mcp/x/test"):
        answer = await orchestrator.operator.post(f"/api/v1/{path}", json={"surprise": 1})
        assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request"), path
    assert (await orchestrator.job(worker.job_id)).state == "running"


NO_CALLS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe",
    b'{"tool_name": "echo", "params": []}',
    b'{"tool_name": "echo", "params": null}',
    b'{"tool_name": "", "params": {}}',
    b'{"tool_name": 5}',
    b'{"params": {}}',
    b'{"tool_name": "echo", "params": {"text": NaN}}',
    b'{"tool_name": "echo", "params": {"text": 1e999}}',
    b'{"tool_name": "echo", "tool_name": "count"}',
    b'{"tool_name": "echo", "params": {"text": "a", "text": "b"}}',
    b'{"tool_name": "echo", "params": {"text": "\\ud800"}}',
    b'{"tool_name": "echo", "params": {"n": ' + b"9" * 5000 + b"}}",
    b'{"tool_name": "echo", "params": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
]


async def test_a_call_that_is_no_strict_json_object_is_400_and_runs_nothing(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    for body in NO_CALLS:
        answer = await worker.http.post(f"/worker/{worker.job_id}/tools/execute", content=body)
        assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request"), body[:80]
    assert not orchestrator.tools["echo"].calls


async def test_bodies_of_other_routes_are_read_as_strictly(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await worker.upload_changes()
    for body in (
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"outcome": "failed", "result": NaN}',
        b'{"outcome": "failed", "outcome": "completed"}',
        b'{"outcome": "failed", "result": "\\ud800"}',
        b'{"outcome": "failed", "result": ' + b"[" * 100_000,
        b'{"outcome": "done"}',
        b'{"outcome": "failed", "iterations": -1}',
    ):
        answer = await worker.http.post(
            f"/worker/{worker.job_id}/complete", content=body, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, problem(answer)["code"]) == (400, "invalid_request"), body[:80]
    assert (await orchestrator.job(worker.job_id)).state == "running"


async def test_a_refusal_repeats_no_value_and_is_bounded(orchestrator: Wired) -> None:
    """BR-121: what was sent may be a secret, or a megabyte."""
    worker = await orchestrator.worker()
    answer = await worker.post("status", {"state": "marker-value", "iteration": 1})
    assert "marker-value" not in answer.text
    long = await worker.post(
        "status", {"state": "running", "iteration": 1} | {"x" * 10_000 + str(n): 1 for n in range(50)}
    )
    assert problem(long)
    assert len(long.content) < 16_000
    odd = await worker.post("status", {"state": "running", "iteration": 1, "a/b~c": 1})
    assert problem(odd)["errors"][0]["pointer"] == "/a~1b~0c"


async def test_a_body_over_16_mib_is_413_by_its_header(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    for name in ("tools/execute", "events"):
        head = (
            f"POST /worker/{worker.job_id}/{name} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {worker.token}\r\nContent-Length: {LIMIT + 1}\r\n\r\n"
        )
        stream = await anyio.connect_unix(str(worker.socket))
        async with stream:
            await stream.send(head.encode())
            with anyio.fail_after(5.0):
                answer = await stream.receive(65_536)
        assert b" 413 " in answer.split(b"\r\n")[0], name
        assert b'"payload_too_large"' in answer
        assert b"16,777,216 bytes" in answer


async def test_a_body_over_16_mib_is_413_however_it_comes(orchestrator: Wired) -> None:
    """Chunked, without a length."""
    worker = await orchestrator.worker()
    async with http_over(orchestrator.running.app, token=worker.token) as http:
        for name in ("tools/execute", "events", "llm/complete"):
            answer = await http.post(
                f"/worker/{worker.job_id}/{name}",
                content=chunked(LIMIT),
                headers={"Content-Type": "application/json"},
            )
            assert (answer.status_code, problem(answer)["code"]) == (413, "payload_too_large"), name
            assert "16,777,216" in problem(answer)["detail"]


async def test_a_call_of_just_under_16_mib_is_taken(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    body = json.dumps({"tool_name": "echo", "params": {"text": "a" * (LIMIT - 100)}}).encode()
    answer = await worker.http.post(f"/worker/{worker.job_id}/tools/execute", content=body)
    assert answer.status_code == 200
    assert answer.json()["output"]["truncated"]["original_bytes"] == LIMIT - 100


async def test_a_bug_is_500_with_an_id_that_the_log_has(logged: Any, orchestrator: Wired) -> None:
    """BR-121: neither the exception's text nor a path reaches the caller."""
    worker = await orchestrator.worker()
    hot = await worker.execute("has_bug")
    orchestrator.model.then(RuntimeError("in /srv/secret/model.py"))  # pyright: ignore[reportArgumentType] - a bug
    other = await worker.post("llm/complete", ASK)
    for answer in (hot, other):
        body = problem(answer)
        assert (answer.status_code, body["code"], body["retryable"]) == (500, "internal", False)
        assert "secret" not in answer.text
        assert logged.getvalue().count(body["detail"].rsplit(" ", 1)[1]) == 1


@pytest.mark.parametrize("where", ["tools/execute", "mcp", "events", "workspace/changes"])
async def test_a_request_whose_body_is_cut_off_does_nothing_and_is_no_bug(
    logged: Any, orchestrator: Wired, where: str
) -> None:
    """Also when what came reads as if it were whole."""
    worker = await orchestrator.worker()
    sent = {
        "tools/execute": b'{"tool_name": "echo", "params": {}}',
        "mcp": b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        "events": b'{"events": []}',
        "workspace/changes": b"",
    }[where]
    parts = [{"type": "http.request", "body": sent, "more_body": True}]
    answered: list[Message] = []

    async def receive() -> Message:
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        answered.append(message)

    method, path = "PUT" if where.startswith("workspace") else "POST", f"/worker/{worker.job_id}/{where}"
    headers = [(b"authorization", b"Bearer " + worker.token.encode())]
    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": headers}
    await orchestrator.running.app(scope | {"query_string": b""}, receive, send)
    assert not [one for one in answered if one.get("status") in {200, 204}]
    assert "request_broke" not in logged.getvalue()
    assert (await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}/calls")).json() == []


async def test_a_database_that_does_not_answer_is_503_and_worth_a_retry(
    orchestrator: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await orchestrator.worker()

    async def away(*_args: Any, **_options: Any) -> Any:
        raise StoreUnavailable("database is locked: /srv/secret/portside.db")

    from orchestrator.adapters.db.database import Database

    monkeypatch.setattr(Database, "write", away)
    answers = [
        await worker.post("status", {"state": "running", "message": "m", "iteration": 1}),
        await worker.execute("count", key="1:a"),
    ]
    monkeypatch.undo()
    for answer in answers:
        body = problem(answer)
        assert (answer.status_code, body["retryable"]) == (503, True)
        assert answer.headers["retry-after"] == "1"
        assert "secret" not in answer.text
    assert not orchestrator.tools["count"].calls


async def test_a_failed_model_says_whether_to_try_again(orchestrator: Wired) -> None:
    """BR-137: one retry owner; the worker is told what is left to do."""
    worker = await orchestrator.worker()
    orchestrator.model.then(
        ModelError("overloaded", status=429, retryable=True, retry_after_s=2.2, cause="overloaded"),
        ModelError("no such model", fatal=True, retryable=True, cause="unknown_model"),
        ModelError("no answer in time", status=504, retryable=True),
    )
    waits = await worker.post("llm/complete", ASK)
    assert (waits.status_code, waits.headers["retry-after"]) == (429, "3")
    assert (problem(waits)["retryable"], problem(waits)["cause"]) == (True, "overloaded")
    fatal = await worker.post("llm/complete", ASK)
    assert (fatal.status_code, problem(fatal)["retryable"]) == (502, False)
    late = await worker.post("llm/complete", ASK)
    assert (late.status_code, problem(late)["code"]) == (504, "model_error")
    assert len(orchestrator.model.requests) == 3


async def test_a_socket_takes_no_bytes_that_are_no_http(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    raw = socket.socket(socket.AF_UNIX)
    with raw:
        await anyio.to_thread.run_sync(raw.connect, str(worker.socket))
        raw.sendall(b"\x00\x01\x02\r\n\r\n")
        raw.settimeout(5.0)
        assert b" 400 " in await anyio.to_thread.run_sync(raw.recv, 4096)
    assert (await worker.get("job")).status_code == 200


async def test_ready_names_what_is_missing_and_health_stays_up(orchestrator: Wired) -> None:
    """BR-103: the API stays responsive while the engine is down."""
    orchestrator.engine.go_down("nobody answers on /var/run/docker.sock")
    with anyio.fail_after(10.0):
        while (ready := await orchestrator.operator.get("/ready")).status_code == 200:
            assert (await orchestrator.operator.get("/health")).status_code == 200
    assert (ready.status_code, problem(ready)["code"]) == (503, "not_ready")
    assert "docker.sock" in problem(ready)["detail"]
