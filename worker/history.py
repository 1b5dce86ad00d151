"""The conversation so far, always in a form that a provider takes back.

Three rules hold after every method: a tool call's arguments are a JSON object's text, call ids are unique,
and every call is answered by exactly one result that directly follows its message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tool_registry.arguments import strict_json
from worker.names import storable_name
from worker.protocol.llm import MediaPart, Message, TextPart, WireToolCall


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What answers one call: text, possibly with media."""

    text: str
    is_error: bool = False
    media: tuple[MediaPart, ...] = ()


class BrokenHistory(Exception):
    """A call without a result, or a result without a call: a fault of ours."""


def clean(text: str) -> str:
    """Text that can be written as UTF-8: half surrogates of odd file names are shown escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def with_unique_ids(
    calls: Iterable[WireToolCall], used: AbstractSet[str], *, prefix: str
) -> list[WireToolCall]:
    """The calls with empty and repeated ids replaced; `prefix` makes the new ones the turn's own."""
    taken = set(used)
    unique: list[WireToolCall] = []
    for index, call in enumerate(calls):
        name = clean(call.id.strip())[:64]
        if not name or name in taken:
            name = f"{prefix}_{index}"
            while name in taken:
                name += "x"
        taken.add(name)
        unique.append(call.model_copy(update={"id": name}))
    return unique


def stored_arguments(text: str | None) -> str:
    """Arguments as the history keeps them: as written when they are a JSON object, else `{}`."""
    if text is None:
        return "{}"
    try:
        value = strict_json(text)
    except ValueError:
        return "{}"
    return clean(text) if isinstance(value, dict) else "{}"


def storable_call(call: WireToolCall, name: str | None = None) -> WireToolCall:
    """A call as a provider takes it back: a legal name, and arguments that are a JSON object."""
    return call.model_copy(
        update={"name": name or storable_name(call.name), "arguments": stored_arguments(call.arguments)}
    )


def assistant_message(text: str, calls: Sequence[WireToolCall]) -> Message:
    """A model's answer as the history keeps it."""
    return Message(role="assistant", content=clean(text), tool_calls=list(calls))


def result_message(call_id: str, result: ToolResult) -> Message:
    """A call's result as the history keeps it."""
    text = clean(result.text)
    content = [TextPart(text=text), *result.media] if result.media else text
    return Message(role="tool", content=content, tool_call_id=call_id, is_error=result.is_error)


class History:
    """The messages of one job.

    Attributes:
        messages: in order; the first `pinned` ones are the opening and never change.
        whole: per call id, the file in which the whole of a shortened result lies.
    """

    def __init__(self, opening: Sequence[Message]) -> None:
        self.messages: list[Message] = list(opening)
        self.pinned = len(self.messages)
        self.whole: dict[str, str] = {}
        self._ids: set[str] = set()

    @property
    def call_ids(self) -> AbstractSet[str]:
        """Every id used so far, also of turns that were summed up since."""
        return self._ids

    def add_user(self, text: str) -> None:
        """Append what somebody says to the agent."""
        self.messages.append(Message(role="user", content=clean(text)))

    def add_turn(self, text: str, calls: Sequence[WireToolCall], results: Mapping[str, ToolResult]) -> None:
        """Append an answer with its calls' results, in call order.

        Raises:
            BrokenHistory: a call has no result.
        """
        missing = [call.id for call in calls if call.id not in results]
        if missing:
            raise BrokenHistory(f"no result for {missing}")
        self._ids.update(call.id for call in calls)
        self.messages.append(assistant_message(text, calls))
        self.messages.extend(result_message(call.id, results[call.id]) for call in calls)


def check_pairing(messages: Sequence[Message]) -> None:
    """Check the third rule over a whole conversation, before it is sent.

    Raises:
        BrokenHistory: naming the first call or result that has no partner.
    """
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                raise BrokenHistory(f"the result of {message.tool_call_id!r} answers no call")
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            raise BrokenHistory(f"the calls {waiting} have no result")
        waiting = [call.id for call in message.tool_calls]
        if len(set(waiting)) != len(waiting):
            raise BrokenHistory("two calls of one answer have the same id")
    if waiting:
        raise BrokenHistory(f"the calls {waiting} have no result")


def size_chars(message: Message) -> int:
    """How large a message is in a request, in characters of text; media count by their data."""
    if isinstance(message.content, str):
        size = len(message.content)
    else:
        size = sum(_part_chars(part) for part in message.content)
    return size + sum(len(call.arguments) + len(call.name) + len(call.id) for call in message.tool_calls)


def _part_chars(part: TextPart | MediaPart) -> int:
    if isinstance(part, TextPart):
        return len(part.text)
    # Providers bill an image by its area, about 1,500 tokens, not by its encoded length.
    return 6_000 if part.type == "image" else len(part.data or "")


def compact_json(value: object) -> str:
    """JSON without spaces, characters kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
