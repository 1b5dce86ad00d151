"""What a request shows, as a script looks at it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from orchestrator.ports.models import ModelMessage


@dataclass(frozen=True, slots=True)
class ShownResult:
    """One tool result: the tool that was called, and what came of it."""

    tool: str
    text: str
    is_error: bool


def text_of(message: ModelMessage) -> str:
    """A message's text; media parts have none."""
    if isinstance(message.content, str):
        return message.content
    return "".join(str(part.get("text", "")) for part in message.content if part.get("type") == "text")


def answers_in(messages: Sequence[ModelMessage]) -> int:
    """How many answers the conversation holds already."""
    return sum(message.role == "assistant" for message in messages)


def before_answer(messages: Sequence[ModelMessage], answers: int) -> Sequence[ModelMessage]:
    """What was shown when the conversation held `answers` answers."""
    seen = 0
    for position, message in enumerate(messages):
        if message.role == "assistant":
            if seen == answers:
                return messages[:position]
            seen += 1
    return messages


def newest_result(messages: Sequence[ModelMessage], tool: str | None) -> ShownResult | None:
    """The newest tool result, or the newest one of `tool`."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "tool":
            name = _called_name(messages[:position], message.tool_call_id)
            if tool in {None, name}:
                return ShownResult(name, text_of(message), message.is_error)
    return None


def _called_name(messages: Sequence[ModelMessage], call_id: str | None) -> str:
    for message in reversed(messages):
        for call in message.tool_calls:
            if call.id == call_id:
                return call.name
    return ""


def value_at(text: str, pointer: str) -> JsonValue:
    """The value that a JSON pointer leads to; text that is not JSON has only the whole, `""`.

    Raises:
        LookupError: there is none.
    """
    try:
        value: JsonValue = json.loads(text)
    except ValueError:  # a plain text result
        value = text
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[key]
        elif isinstance(value, list) and key.isdecimal():
            value = value[int(key)]
        else:
            raise LookupError(pointer)
    return value
