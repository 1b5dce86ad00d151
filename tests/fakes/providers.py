"""A model provider on loopback that speaks both dialects, streams, and fails in every known way.

It is as strict as the real ones: a request that they would refuse is answered with 400, whatever was planned.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import anyio
import uvicorn

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call to stream."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Say:
    """An answer; after `cut_after` events it ends as `then` says, without a finish reason."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: Literal["stop", "length", "tool_calls", "content_filter"] = "stop"
    cut_after: int | None = None
    then: Literal["close", "reset", "silence", "pings", "error"] = "close"
    error: Body = field(default_factory=lambda: {"type": "overloaded_error", "message": "Overloaded"})
    chunk_bytes: int | None = None


@dataclass(frozen=True)
class Fail:
    """An answer that is none: a status with a body, or a connection reset when `status` is 0."""

    status: int
    body: Body | str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Nothing:
    """Not a word, until the client leaves."""


Reply = Say | Fail | Nothing


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Body:
        return json.loads(self.text)

    @property
    def dialect(self) -> Literal["openai", "anthropic", "responses"]:
        if self.path.endswith("/responses"):
            return "responses"
        return "anthropic" if self.path.endswith(("/messages", "/count_tokens")) else "openai"


class FakeProvider:
    """Gives the planned replies in order, the last one for ever; `reply` may compute them instead."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[Seen] = []
        self.plan: list[Reply] = [Say("ok")]
        self.reply: Callable[[Seen], Reply] | None = None
        self.closed = anyio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        seen = Seen(
            scope["path"],
            {name.decode(): value.decode() for name, value in scope["headers"]},
            (await _whole_body(receive)).decode(),
        )
        self.seen.append(seen)
        fault = fault_in(seen)
        if fault:
            await _send_whole(Fail(400, {"error": {"type": "invalid_request_error", "message": fault}}), send)
            return
        reply = self.reply(seen) if self.reply else self.plan[0]
        if not self.reply and len(self.plan) > 1:
            self.plan.pop(0)
        if isinstance(reply, Nothing):
            await self._until_left(receive, send)
        elif isinstance(reply, Fail):
            await _send_whole(reply, send)
        elif not seen.body.get("stream"):
            await _send_whole(Fail(200, _WHOLE[seen.dialect](reply)), send)
        else:
            await self._stream(reply, seen, receive, send)

    async def _stream(self, reply: Say, seen: Seen, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        events = list(_EVENTS[seen.dialect](reply))
        data = "".join(events[: reply.cut_after]).encode()
        size = reply.chunk_bytes or len(data) or 1
        for start in range(0, len(data), size):
            await send({"type": "http.response.body", "body": data[start : start + size], "more_body": True})
        if reply.cut_after is not None and reply.then == "reset":
            reset(send)
        elif reply.cut_after is not None and reply.then in {"silence", "pings"}:
            await self._until_left(receive, send, pings=reply.then == "pings")
        else:
            error = {"type": "error", "error": reply.error}
            is_error = reply.cut_after is not None and reply.then == "error"
            last = f"event: error\ndata: {json.dumps(error)}\n\n".encode() if is_error else b""
            await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _until_left(self, receive: Any, send: Any, *, pings: bool = False) -> None:
        async with anyio.create_task_group() as group:
            if pings:
                group.start_soon(_ping, send)
            while (await receive())["type"] != "http.disconnect":
                pass
            self.closed.set()
            group.cancel_scope.cancel()


async def _ping(send: Any) -> None:
    while True:
        await send({"type": "http.response.body", "body": b": ping\n\n", "more_body": True})
        await anyio.sleep(0.005)


async def _whole_body(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _send_whole(reply: Fail, send: Any) -> None:
    if reply.status == 0:
        reset(send)
        return
    is_text = isinstance(reply.body, str)
    kind = "text/html" if is_text else "application/json"
    headers = {"content-type": kind, **reply.headers}
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    text = cast("str", reply.body) if is_text else json.dumps(reply.body)
    await send({"type": "http.response.body", "body": text.encode()})


def reset(send: Any) -> None:
    """Drop the connection; ASGI has no word for it, so uvicorn's transport is asked."""
    send.__self__.transport.abort()


def openai_events(reply: Say) -> Iterator[str]:
    """The events of a chat completion."""

    def event(delta: Body, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        return f"data: {json.dumps(chunk)}\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield event({"content": piece})
    for index, call in enumerate(reply.calls):
        yield event(
            {
                "tool_calls": [
                    {
                        "index": index,
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": ""},
                    }
                ]
            }
        )
        for piece in _pieces(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, reply.finish)
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    chunk: Body = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": usage,
    }
    yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def anthropic_events(reply: Say) -> Iterator[str]:
    """The events of a message."""

    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    usage = {
        "input_tokens": 40,
        "output_tokens": 1,
        "cache_read_input_tokens": 50,
        "cache_creation_input_tokens": 10,
    }
    message: Body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
    yield event("ping")
    blocks: list[tuple[Body, str, str, str]] = []
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", reply.text))
    for call in reply.calls:
        start: Body = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((start, "input_json_delta", "partial_json", call.arguments))
    for index, (opening, kind, key, text) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=opening)
        for piece in _pieces(text):
            yield event("content_block_delta", index=index, delta={"type": kind, key: piece})
        yield event("content_block_stop", index=index)
    delta = {"stop_reason": _STOP_REASONS[reply.finish], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={**usage, "output_tokens": 20})
    yield event("message_stop")


def responses_events(reply: Say) -> Iterator[str]:
    """The events of a response that matter for its count: text, and the end."""

    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    yield event(
        "response.created", response={**responses_whole(reply), "status": "in_progress", "usage": None}
    )
    for piece in _pieces(reply.text):
        yield event("response.output_text.delta", delta=piece, item_id="m", output_index=0, content_index=0)
    yield event("response.completed", response=responses_whole(reply))


def openai_whole(reply: Say) -> Body:
    """A chat completion that is not streamed."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    message: Body = {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": usage}


def anthropic_whole(reply: Say) -> Body:
    """A message that is not streamed."""
    blocks: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in reply.calls
    ]
    usage = {
        "input_tokens": 40,
        "output_tokens": 20,
        "cache_read_input_tokens": 50,
        "cache_creation_input_tokens": 10,
    }
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": blocks, "stop_reason": _STOP_REASONS[reply.finish], "usage": usage}


def responses_whole(reply: Say) -> Body:
    """A response that is not streamed."""
    part: Body = {"type": "output_text", "text": reply.text, "annotations": []}
    item: Body = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
    }


_EVENTS: dict[str, Callable[[Say], Iterator[str]]] = {
    "openai": openai_events,
    "anthropic": anthropic_events,
    "responses": responses_events,
}
_WHOLE: dict[str, Callable[[Say], Body]] = {
    "openai": openai_whole,
    "anthropic": anthropic_whole,
    "responses": responses_whole,
}


def _pieces(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ROOT_WORDS = {"anyOf", "oneOf", "allOf", "not", "enum"}


def fault_in(seen: Seen) -> str | None:
    """Why the real provider would refuse a request."""
    body = seen.body
    if seen.dialect == "responses":
        return None if "input" in body else "input is required"
    if seen.dialect == "openai":
        tools = [tool["function"] for tool in body.get("tools", [])]
        schemas = [(tool["name"], tool["parameters"]) for tool in tools]
        pairing = _openai_history_fault(body["messages"])
    else:
        schemas = [(tool["name"], tool["input_schema"]) for tool in body.get("tools", [])]
        pairing = _anthropic_history_fault(body["messages"])
    return pairing or next(
        (fault for name, schema in schemas if (fault := _tool_fault(name, schema, seen))), None
    )


def _tool_fault(name: str, schema: Body, seen: Seen) -> str | None:
    if not _NAME.fullmatch(name):
        return f"Invalid tool name {name!r}"
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return f"Invalid schema for function {name!r}: object schema missing properties"
    if _ROOT_WORDS & set(schema):
        return f"Invalid schema for function {name!r}: combinators at the top level"
    keys = cast("Body", schema["properties"])
    if seen.dialect == "anthropic" and not all(_KEY.fullmatch(key) for key in keys):
        return f"tools.{name}: Property keys should match pattern"
    return None


def _openai_history_fault(messages: list[Body]) -> str | None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"tool_call_id {message['tool_call_id']} is not found"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"tool_calls without results: {waiting}"
        calls: list[Body] = message.get("tool_calls") or []
        for call in calls:
            waiting.append(call["id"])
            try:
                json.loads(call["function"]["arguments"])
            except ValueError:
                return "function.arguments must be valid JSON"
    return f"tool_calls without results: {waiting}" if waiting else None


def _anthropic_history_fault(messages: list[Body]) -> str | None:
    waiting: list[str] = []
    for message in messages:
        content: Any = message["content"]
        blocks = cast("list[Body]", content) if isinstance(content, list) else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            return f"tool_use ids {waiting} need results right after; got {results}"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if not all(_NAME.fullmatch(call_id) for call_id in waiting):
            return f"tool_use.id does not match: {waiting}"
    return f"tool_use without results: {waiting}" if waiting else None


class _Server(uvicorn.Server):
    """Leaves the test process's signals alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def fake_provider() -> AsyncGenerator[FakeProvider]:
    """A running fake; `url` is its address."""
    app = FakeProvider()
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", proxy_headers=False)
    server = _Server(config)
    socket = config.bind_socket()
    app.url = f"http://127.0.0.1:{socket.getsockname()[1]}"
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [socket])
        try:
            yield app
        finally:
            server.should_exit = True
            server.force_exit = True
