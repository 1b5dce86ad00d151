"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from orchestrator.adapters.models.native_form import (
    SHOWN_MODEL,
    Json,
    event,
    parameters_text,
    pieces,
    text_of,
)
from orchestrator.ports.models import ModelAnswer, ModelMessage, ModelRequest, ModelTool, ModelToolCall

_ID = "msg_portside"
_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class AnthropicForm:
    """`messages`."""

    def read(self, body: Json, *, job_id: str, model: str) -> ModelRequest:
        """A request's messages and tools."""
        messages = [ModelMessage("system", text_of(body["system"]))] if body.get("system") else []
        for message in body["messages"]:
            messages += _messages(message)
        tools = tuple(
            ModelTool(one["name"], one.get("description") or "", parameters_text(one["input_schema"]))
            for one in body.get("tools") or ()
            if "input_schema" in one
        )
        return ModelRequest(job_id, model, tuple(messages), tools or None)

    def whole(self, answer: ModelAnswer) -> Json:
        """A `message`."""
        return {
            **_head(answer),
            "content": [_whole_block(one) for one in _blocks(answer)],
            "stop_reason": _STOP_REASONS[answer.finish_reason],
        }

    def events(self, answer: ModelAnswer) -> Iterator[bytes]:
        """The events of one."""
        yield _event("message_start", message={**_head(answer), "content": [], "stop_reason": None})
        for index, (opening, kind, key, text) in enumerate(_blocks(answer)):
            yield _event("content_block_start", index=index, content_block=opening)
            for piece in pieces(text):
                yield _event("content_block_delta", index=index, delta={"type": kind, key: piece})
            yield _event("content_block_stop", index=index)
        delta = {"stop_reason": _STOP_REASONS[answer.finish_reason], "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": answer.usage.output_tokens})
        yield _event("message_stop")


_Block = tuple[Json, str, str, str]


def _blocks(answer: ModelAnswer) -> list[_Block]:
    """Each block as it opens, and how its text follows."""
    blocks: list[_Block] = []
    if answer.content:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", answer.content))
    for call in answer.tool_calls:
        opening: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((opening, "input_json_delta", "partial_json", call.arguments))
    return blocks


def _whole_block(block: _Block) -> Json:
    opening, _, _, text = block
    if opening["type"] == "text":
        return {**opening, "text": text}
    return {**opening, "input": json.loads(text)}


def _messages(message: Json) -> list[ModelMessage]:
    content: Any = message["content"]
    if isinstance(content, str):
        return [ModelMessage(message["role"], content)]
    blocks: list[Json] = content
    results = [
        ModelMessage(
            "tool",
            text_of(one.get("content")),
            one["tool_use_id"],
            is_error=bool(one.get("is_error")),
        )
        for one in blocks
        if one["type"] == "tool_result"
    ]
    calls = tuple(
        ModelToolCall(one["id"], one["name"], json.dumps(one["input"], ensure_ascii=False))
        for one in blocks
        if one["type"] == "tool_use"
    )
    text = text_of([one for one in blocks if one["type"] == "text"])
    if results and not text:
        return results
    return [*results, ModelMessage(message["role"], text, tool_calls=calls)]


def _head(answer: ModelAnswer) -> Json:
    usage = answer.usage
    return {
        "id": _ID,
        "type": "message",
        "role": "assistant",
        "model": SHOWN_MODEL,
        "stop_sequence": None,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)
