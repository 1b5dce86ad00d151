"""Our messages in the model library's form."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import (
    ModelMessage as LibraryMessage,
)
from pydantic_ai.messages import (
    ModelRequest as LibraryRequest,
)
from pydantic_core import from_json

from orchestrator.adapters.models.tools import ShownTools
from orchestrator.ports.models import ModelMessage, ModelToolCall

_MEDIA_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class MessageMapper:
    """Maps one request's messages.

    Args:
        tools: as the model is shown them; past calls are told in the same names.
        media_in_results: the provider takes images in a tool's result; else they follow in a user message.
        strict_ids: call ids may hold only letters, digits, `_` and `-`.
    """

    def __init__(self, tools: ShownTools, *, media_in_results: bool, strict_ids: bool) -> None:
        self._tools = tools
        self._media_in_results = media_in_results
        self._strict_ids = strict_ids

    def map(self, messages: Sequence[ModelMessage]) -> list[LibraryMessage]:
        """Answers become responses; what lies between two answers becomes one request."""
        mapped: list[LibraryMessage] = []
        names: dict[str, str] = {}
        waiting: list[ModelMessage] = []
        for message in messages:
            if message.role != "assistant":
                waiting.append(message)
                continue
            self._flush(waiting, names, mapped)
            names.update((call.id, call.name) for call in message.tool_calls)
            parts = [TextPart(text)] if (text := _text(message)) else []
            mapped.append(ModelResponse(parts=[*parts, *map(self._call, message.tool_calls)]))
        self._flush(waiting, names, mapped)
        return mapped

    def _flush(
        self, waiting: list[ModelMessage], names: Mapping[str, str], mapped: list[LibraryMessage]
    ) -> None:
        if waiting:
            mapped.append(LibraryRequest(parts=list(self._request_parts(waiting, names))))
            waiting.clear()

    def _request_parts(
        self, messages: Sequence[ModelMessage], names: Mapping[str, str]
    ) -> Iterator[ModelRequestPart]:
        moved: list[UserContent] = []
        for message in messages:
            if message.role == "tool":
                content = _content(message)
                if not self._media_in_results:
                    content = _move_media(message, content, moved)
                yield ToolReturnPart(
                    tool_name=names.get(message.tool_call_id or "", "unknown"),
                    content=content,
                    tool_call_id=self._id(message.tool_call_id or ""),
                    outcome="failed" if message.is_error else "success",
                )
                continue
            # Media of a batch of results follow the whole batch: nothing may stand between two of them.
            yield from _moved_part(moved)
            if message.role == "system":
                yield SystemPromptPart(_text(message))
            else:
                yield UserPromptPart(_content(message))
        yield from _moved_part(moved)

    def _call(self, call: ModelToolCall) -> ToolCallPart:
        return ToolCallPart(
            call.name, replayable(self._tools.shown_arguments(call)), tool_call_id=self._id(call.id)
        )

    def _id(self, call_id: str) -> str:
        if not self._strict_ids or _ANTHROPIC_ID.fullmatch(call_id):
            return call_id
        return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:24]}"


def replayable(arguments: str) -> str:
    """The arguments of a past call: `{}` where they are no JSON object, which every provider refuses.

    Source: BR-140.
    """
    try:
        value = from_json(arguments)
    except ValueError:  # not JSON; what was wrong with it stands in the call's result
        return "{}"
    return arguments if isinstance(value, dict) else "{}"


def _text(message: ModelMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(part.get("text", "")) for part in message.content if part.get("type") == "text")


def _content(message: ModelMessage) -> str | list[str | BinaryContent]:
    if isinstance(message.content, str):
        return message.content
    if all(part.get("type") == "text" for part in message.content):
        return _text(message)
    return [_part(part) for part in message.content]


def _part(part: Mapping[str, Any]) -> str | BinaryContent:
    if part.get("type") == "text":
        return str(part.get("text", ""))
    media_type = str(part.get("media_type"))
    try:
        data = base64.b64decode(str(part.get("data") or ""), validate=True)
    except binascii.Error:
        return f"[{media_type} left out: its data is not base64]"
    if media_type not in _MEDIA_TYPES or not data:
        return f"[{media_type}, {len(data)} bytes, left out: models are sent PNG, JPEG, GIF, WebP and PDF]"
    return BinaryContent(data, media_type=media_type)


def _move_media(
    message: ModelMessage, content: str | list[str | BinaryContent], moved: list[UserContent]
) -> str:
    """The text of a result; its media join `moved`, each with a label that the text repeats."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for item in content:
        if isinstance(item, str):
            texts.append(item)
        else:
            label = f"[{item.media_type} of call {message.tool_call_id}]"
            texts.append(f"{label} follows")
            moved += [label, item]
    return "\n".join(texts)


def _moved_part(moved: list[UserContent]) -> Iterator[ModelRequestPart]:
    if moved:
        yield UserPromptPart(list(moved))
        moved.clear()
