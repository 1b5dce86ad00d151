"""A small orchestrator on a unix socket, for the worker's side of the wire.

It keeps everything it was sent, answers a scripted model, runs scripted tools once per idempotency key,
and fails on demand: `fail(route, ...)` queues faults that the next requests of that route meet.
"""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import tarfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import anyio.to_thread
import uvicorn

Json = dict[str, Any]
ModelScript = Callable[[Json], Json]
RemoteTool = Callable[[Json], Any]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a problem instead."""

    status: int
    code: str
    retryable: bool = False
    retry_after_s: float | None = None
    cause: str | None = None
    detail: str = "as the test asked"
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Answer a page that is no problem document."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Drop:
    """Do the work, then break the connection before the answer."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Do nothing until the test releases it."""

    release: threading.Event


Fault = Refuse | Page | Drop | Hang


@dataclass(slots=True)
class Seen:
    """One request."""

    method: str
    route: str
    headers: dict[str, str]
    query: dict[str, list[str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class _Reply:
    status: int
    body: bytes = b""
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])


def jwt_of(serial: int, life_s: float, issued_at: float) -> str:
    """A token with the claims that time its renewal; nobody here checks its signature."""

    def part(value: Json) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    claims = {"jti": f"t{serial}", "iat": issued_at, "exp": issued_at + life_s}
    return ".".join([part({"alg": "EdDSA"}), part(claims), "sig"])


def say(content: str, finish_reason: str = "stop", **usage: int) -> Json:
    """A model's answer in words."""
    return {"content": content, "finish_reason": finish_reason, "usage": usage, "tool_calls": []}


def call(*calls: tuple[str, str, Any], content: str = "", finish_reason: str = "tool_calls") -> Json:
    """A model's answer that calls tools: `(id, name, arguments)`; text is taken as it is."""
    return {
        "content": content,
        "finish_reason": finish_reason,
        "usage": {},
        "tool_calls": [
            {"id": i, "name": n, "arguments": a if isinstance(a, str) else json.dumps(a)} for i, n, a in calls
        ],
    }


def finish(summary: str = "done", *, success: bool = True) -> Json:
    """A model's answer that ends the job."""
    return call(("finish-call", "finish", {"success": success, "summary": summary}))


def in_turn(*answers: Json) -> ModelScript:
    """A model that gives these answers, then finishes."""
    rest = iter(answers)
    return lambda _request: next(rest, None) or finish()


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """A plain tar."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


class WorkerOrchestrator:
    """The orchestrator of one job, as far as its worker can see.

    Attributes:
        model: answers `llm/complete_with_tools` requests.
        summarise: answers `llm/complete` requests.
        tools: remote tools by name; each returns a wire output, or raises `Refusal`.
        executed: every run of a remote tool, in order: `(key, name, params)`.
    """

    def __init__(self, directory: Path, *, job_id: str = "job-1", token_life_s: float = 3600.0) -> None:
        self.directory = directory
        self.socket = directory / "s"
        self.token_file = directory / "token"
        self.job_id = job_id
        self.job: Json = {
            "job_id": job_id,
            "title": "a job",
            "task": "do the task",
            "agent": {"name": "coder", "instance_id": "i-1", "network": "local"},
            "limits": {
                "max_iterations": 50,
                "deadline_at": (datetime.now(UTC) + timedelta(minutes=10)).isoformat(),  # noqa: TID251
            },
            "protocol_version": "1",
        }
        self.workspace: bytes | None = None
        self.credentials: list[Json] = []
        self.model: ModelScript = in_turn()
        self.summarise: ModelScript = lambda _request: say("a summary")
        self.tools: dict[str, RemoteTool] = {}
        self.definitions: list[Json] = []
        self.instructions: list[str] = []
        self.policies: dict[str, Json] = {}
        self.artifacts: dict[str, bytes] = {}
        self.deliveries: list[Json] = []
        self.token_life_s = token_life_s
        self.renewable = True
        self.over = False
        self.seen: list[Seen] = []
        self.events: list[Json] = []
        self.executed: list[tuple[str, str, Json]] = []
        self.acknowledged: list[str] = []
        self.changes: bytes | None = None
        self.report: Json | None = None
        self._outcomes: dict[str, _Reply] = {}
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._serial = itertools.count(1)
        self._tokens: dict[str, float] = {}
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.token_file.write_text(self.issue_token())

    def advertise(self, name: str, tool: RemoteTool, parameters: Json | None = None, **policy: Any) -> None:
        """Put a tool into the catalogue."""
        schema = parameters or {"type": "object", "properties": {}, "additionalProperties": True}
        self.definitions.append({"name": name, "description": f"the {name} tool", "parameters": schema})
        self.policies[name] = policy
        self.tools[name] = tool

    def withdraw(self, name: str) -> None:
        """Take a tool out of the catalogue."""
        self.definitions = [one for one in self.definitions if one["name"] != name]
        self.policies.pop(name, None)

    def fail(self, route: str, *faults: Fault) -> None:
        """Let the next requests of a route meet these faults, in order."""
        self._faults[route].extend(faults)

    def issue_token(self) -> str:
        """A token that is valid from now on."""
        now = time.monotonic()
        token = jwt_of(next(self._serial), self.token_life_s, now)
        self._tokens[token] = now + self.token_life_s
        return token

    def expire_tokens(self) -> None:
        """Let every token be expired as of now."""
        self._tokens = dict.fromkeys(self._tokens, 0.0)

    def requests(self, route: str) -> list[Seen]:
        """What was sent to one route."""
        return [one for one in self.seen if one.route == route]

    def of_type(self, kind: str) -> list[Json]:
        """The data of stored events of one type."""
        return [one["data"] for one in self.events if one["type"] == kind]

    def start(self) -> None:
        """Listen; again after `stop` is a restart."""
        config = uvicorn.Config(
            self, uds=str(self.socket), log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        end = time.monotonic() + 10.0
        while not self._server.started:
            assert time.monotonic() < end, "the fake orchestrator does not start"
            threading.Event().wait(0.01)

    def stop(self) -> None:
        """Stop listening; what is stored stays."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(10.0)
            self._server = self._thread = None
        self.socket.unlink(missing_ok=True)

    async def __call__(self, scope: Json, receive: Any, send: Any) -> None:
        """ASGI."""
        body = await _body(receive)
        route = scope["path"].removeprefix(f"/worker/{self.job_id}/")
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        seen = Seen(scope["method"], route, headers, parse_qs(scope["query_string"].decode()), body)
        self.seen.append(seen)
        fault = self._faults[route].popleft() if self._faults[route] else None
        if isinstance(fault, Hang):
            await anyio.to_thread.run_sync(fault.release.wait, 30.0)
        if isinstance(fault, Refuse):
            reply = _problem(fault)
        elif isinstance(fault, Page):
            reply = _Reply(fault.status, fault.body, "text/html", dict(fault.headers))
        else:
            reply = await anyio.to_thread.run_sync(self._answer, seen)
        await _send(send, reply, broken=isinstance(fault, Drop))

    def _answer(self, seen: Seen) -> _Reply:
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        expires = self._tokens.get(token)
        if self.over:
            return _problem(Refuse(409, "job_not_active"))
        if expires is None:
            return _problem(Refuse(401, "token_invalid"))
        expired = time.monotonic() > expires
        if expired and not (seen.route == "token/renew" and self.renewable):
            return _problem(Refuse(401, "token_expired"))
        if seen.route.startswith(("llm/openai/", "llm/anthropic/")):
            return self._on_native(seen)
        name = seen.route.split("/")[0] if seen.route.startswith("artifacts/") else seen.route
        handler = cast("Callable[[Seen], _Reply]", getattr(self, f"_on_{name.replace('/', '_')}"))
        return handler(seen)

    def _on_job(self, _seen: Seen) -> _Reply:
        self.token_file.unlink(missing_ok=True)
        return _json(self.job)

    def _on_workspace(self, _seen: Seen) -> _Reply:
        return _Reply(204) if self.workspace is None else _Reply(200, self.workspace, "application/x-tar")

    def _on_workspace_changes(self, seen: Seen) -> _Reply:
        digest = base64.b64encode(hashlib.sha256(seen.body).digest()).decode()
        if seen.headers.get("content-digest") != f"sha-256=:{digest}:":
            return _problem(Refuse(400, "invalid_request", detail="the digest does not fit"))
        self.changes = seen.body
        return _Reply(204)

    def _on_credentials(self, _seen: Seen) -> _Reply:
        return _json(self.credentials) if self.credentials else _Reply(204)

    def _on_status(self, _seen: Seen) -> _Reply:
        return _Reply(204)

    def _on_events(self, seen: Seen) -> _Reply:
        known = {one["seq"] for one in self.events}
        self.events.extend(one for one in seen.json["events"] if one["seq"] not in known)
        return _Reply(204)

    def _on_prompt(self, seen: Seen) -> _Reply:
        acked = seen.query.get("ack", [])
        self.acknowledged.extend(acked)
        self.deliveries = [one for one in self.deliveries if one["delivery_id"] not in acked]
        if not self.deliveries:
            threading.Event().wait(min(float(seen.query["wait_s"][0]), 0.05))
        return _json({"deliveries": self.deliveries}) if self.deliveries else _Reply(204)

    def _on_llm_complete(self, seen: Seen) -> _Reply:
        return _json(self.summarise(seen.json))

    def _on_llm_complete_with_tools(self, seen: Seen) -> _Reply:
        answer = self.model(seen.json)
        return _problem(Refuse(**answer["refuse"])) if "refuse" in answer else _json(answer)

    def _on_native(self, seen: Seen) -> _Reply:
        """An answer that says what was asked, so that a test can look."""
        return _json({"route": seen.route, "asked": seen.json if seen.body else None})

    def catalog(self) -> Json:
        """The present catalogue."""
        content = {
            "tools": self.definitions,
            "toolset_instructions": self.instructions,
            "policies": self.policies,
        }
        version = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return {**content, "catalog_version": f"sha256:{version}"}

    def _on_tools_catalog(self, seen: Seen) -> _Reply:
        catalog = self.catalog()
        etag = f'"{catalog["catalog_version"]}"'
        if seen.headers.get("if-none-match") == etag:
            return _Reply(304, headers={"ETag": etag})
        return _json(catalog, ETag=etag)

    def _on_tools_execute(self, seen: Seen) -> _Reply:
        key = seen.headers["idempotency-key"]
        if key not in self._outcomes:
            self._outcomes[key] = self._execute(key, seen.json)
        return self._outcomes[key]

    def _execute(self, key: str, request: Json) -> _Reply:
        name, params = request["tool_name"], request["params"]
        self.executed.append((key, name, params))
        try:
            output = self.tools[name](params)
        except RefusedCall as refused:
            return _problem(refused.fault)
        whole = isinstance(output, dict) and "result" in cast("Json", output)
        body: Json = cast("Json", output) if whole else {"result": output}
        return _json({"output": body, "catalog_version": self.catalog()["catalog_version"]})

    def _on_artifacts(self, seen: Seen) -> _Reply:
        data = self.artifacts[seen.route.split("/")[1]]
        offset, limit = int(seen.query["offset"][0]), int(seen.query["limit"][0])
        return _Reply(200, data[offset : offset + limit], "application/octet-stream")

    def _on_token_renew(self, _seen: Seen) -> _Reply:
        expires = datetime.now(UTC) + timedelta(seconds=self.token_life_s)  # noqa: TID251
        return _json({"token": self.issue_token(), "expires_at": expires.isoformat()})

    def _on_complete(self, seen: Seen) -> _Reply:
        if self.changes is None:
            return _problem(Refuse(409, "changes_missing"))
        if self.report is not None and self.report != seen.json:
            return _problem(Refuse(409, "conflict"))
        self.report = seen.json
        return _json({"status": "ok"})


class RefusedCall(Exception):
    """A remote tool's call that gives a problem."""

    def __init__(self, fault: Refuse) -> None:
        super().__init__(fault.code)
        self.fault = fault


def _json(value: Any, **headers: str) -> _Reply:
    return _Reply(200, json.dumps(value).encode(), headers=headers)


def _problem(fault: Refuse) -> _Reply:
    body = {
        "title": fault.code,
        "status": fault.status,
        "code": fault.code,
        "detail": fault.detail,
        "retryable": fault.retryable,
        "retry_after_s": fault.retry_after_s,
        "cause": fault.cause,
        "outcome": fault.outcome,
    }
    return _Reply(fault.status, json.dumps(body).encode(), "application/problem+json")


async def _body(receive: Callable[[], Awaitable[Json]]) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _send(send: Callable[[Json], Awaitable[None]], reply: _Reply, *, broken: bool) -> None:
    headers: Iterable[tuple[str, str]] = reply.headers.items()
    if reply.status not in {204, 304}:
        headers = [
            ("content-type", reply.media_type),
            ("content-length", str(len(reply.body) + broken)),
            *headers,
        ]
    raw = [(key.encode(), value.encode()) for key, value in headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    # A body that is shorter than announced makes the server close the connection.
    await send({"type": "http.response.body", "body": reply.body, "more_body": broken})
