"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.adapters.models.native_form import (
    SHOWN_MODEL,
    Json,
    event,
    parameters_text,
    pieces,
    role_of,
    text_of,
)
from orchestrator.ports.models import ModelAnswer, ModelMessage, ModelRequest, ModelTool, ModelToolCall

_ID = "chatcmpl-portside"


class ChatForm:
    """`chat/completions`."""

    def read(self, body: Json, *, job_id: str, model: str) -> ModelRequest:
        """A request's messages and tools."""
        tools = tuple(_tool(one["function"]) for one in body.get("tools") or () if "function" in one)
        return ModelRequest(job_id, model, tuple(map(_message, body["messages"])), tools or None)

    def whole(self, answer: ModelAnswer) -> Json:
        """A `chat.completion`."""
        message: Json = {"role": "assistant", "content": answer.content or None}
        if answer.tool_calls:
            message["tool_calls"] = [_call(one) for one in answer.tool_calls]
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
        return {**_head("chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def events(self, answer: ModelAnswer) -> Iterator[bytes]:
        """The chunks of one."""
        yield _chunk({"role": "assistant", "content": ""})
        for piece in pieces(answer.content):
            yield _chunk({"content": piece})
        for index, call in enumerate(answer.tool_calls):
            yield _chunk({"tool_calls": [{"index": index, **_call(call)}]})
        yield _chunk({}, finish=answer.finish_reason)
        yield event({**_head("chat.completion.chunk"), "choices": [], "usage": _usage(answer)})
        yield event("[DONE]")


def _message(message: Json) -> ModelMessage:
    calls: list[Json] = message.get("tool_calls") or []
    return ModelMessage(
        role_of(message),
        text_of(message.get("content")),
        message.get("tool_call_id"),
        tuple(
            ModelToolCall(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in calls
        ),
    )


def _tool(function: Json) -> ModelTool:
    return ModelTool(
        function["name"], function.get("description") or "", parameters_text(function.get("parameters"))
    )


def _call(call: ModelToolCall) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _head(kind: str) -> Json:
    return {"id": _ID, "object": kind, "created": 0, "model": SHOWN_MODEL}


def _chunk(delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**_head("chat.completion.chunk"), "choices": [choice]})


def _usage(answer: ModelAnswer) -> Json:
    usage = answer.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
