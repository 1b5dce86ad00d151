"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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

_ID = "resp_portside"


class ResponsesForm:
    """`responses`."""

    def read(self, body: Json, *, job_id: str, model: str) -> ModelRequest:
        """A request's input, as messages, and its tools."""
        given: Any = body["input"]
        items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        messages = [ModelMessage("system", body["instructions"])] if body.get("instructions") else []
        for item in items:
            messages = _with_item(messages, item)
        tools = tuple(
            ModelTool(one["name"], one.get("description") or "", parameters_text(one.get("parameters")))
            for one in body.get("tools") or ()
            if one.get("type") == "function"
        )
        return ModelRequest(job_id, model, tuple(messages), tools or None)

    def whole(self, answer: ModelAnswer) -> Json:
        """A `response`."""
        return _response(answer, "completed", _output(answer))

    def events(self, answer: ModelAnswer) -> Iterator[bytes]:
        """The events of one."""
        for number, (kind, data) in enumerate(_events(answer)):
            yield event({"type": kind, "sequence_number": number, **data}, kind)


def _events(answer: ModelAnswer) -> Iterator[tuple[str, Json]]:
    yield "response.created", {"response": _response(answer, "in_progress", [])}
    output = _output(answer)
    for index, item in enumerate(output):
        place = {"output_index": index}
        yield (
            "response.output_item.added",
            {**place, "item": {**item, "status": "in_progress", **_empty(item)}},
        )
        part_of = {**place, "item_id": item["id"]}
        if item["type"] == "message":
            yield from _text_events({**part_of, "content_index": 0}, item["content"][0])
        else:
            for piece in pieces(item["arguments"]):
                yield "response.function_call_arguments.delta", {**part_of, "delta": piece}
            whole = {"arguments": item["arguments"], "name": item["name"]}
            yield "response.function_call_arguments.done", {**part_of, **whole}
        yield "response.output_item.done", {**place, "item": item}
    yield "response.completed", {"response": _response(answer, "completed", output)}


def _text_events(place: Json, part: Json) -> Iterator[tuple[str, Json]]:
    yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _empty(item: Json) -> Json:
    return {"content": []} if item["type"] == "message" else {"arguments": ""}


def _with_item(messages: list[ModelMessage], item: Json) -> list[ModelMessage]:
    kind = item.get("type", "message")
    if kind == "message":
        return [*messages, ModelMessage(role_of(item), text_of(item["content"]))]
    if kind == "function_call":
        call = ModelToolCall(item["call_id"], item["name"], item["arguments"])
        if messages and messages[-1].role == "assistant":
            last = messages[-1]
            joined = ModelMessage("assistant", last.content, tool_calls=(*last.tool_calls, call))
            return [*messages[:-1], joined]
        return [*messages, ModelMessage("assistant", "", tool_calls=(call,))]
    if kind == "function_call_output":
        return [*messages, ModelMessage("tool", text_of(item["output"]), item["call_id"])]
    return messages  # reasoning and the like: nothing that a neutral model reads


def _output(answer: ModelAnswer) -> list[Json]:
    output: list[Json] = []
    if answer.content or not answer.tool_calls:
        part: Json = {"type": "output_text", "text": answer.content, "annotations": [], "logprobs": []}
        output.append(
            {
                "type": "message",
                "id": "msg_portside",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for index, call in enumerate(answer.tool_calls)
    ]
    return output


def _response(answer: ModelAnswer, status: str, output: list[Json]) -> Json:
    usage = answer.usage
    return {
        "id": _ID,
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": SHOWN_MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
        if status == "completed"
        else None,
    }
