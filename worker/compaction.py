"""A conversation made to fit: pure functions over its messages.

A turn is an assistant message with everything up to the next one; turns are kept or left out whole, so a
call never loses its result. The opening (system messages, instructions, the task) and the last ten turns
stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tool_registry.truncation import cut_middle
from worker.history import size_chars
from worker.protocol.llm import Message, TextPart, WireToolCall

KEPT_TURNS = 10
CHARS_PER_TOKEN = 3.5
_STUB_MARK = "[result left out to save room: "
_SMALL_CHARS = 200
_DIGEST_LINES = 200
SUMMARY_MARK = "Notes on the earlier work, which is no longer shown:\n\n"


@dataclass(frozen=True, slots=True)
class Shortened:
    """Messages, and what was taken out of them in words for the job's log; None when nothing was."""

    messages: list[Message]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A conversation in three: the opening, the older turns, and the last ones."""

    opening: list[Message]
    older: list[Message]
    recent: list[Message]


def tokens_of(messages: Sequence[Message], tools_chars: int = 0) -> int:
    """About how many tokens a request of these is."""
    chars = tools_chars + sum(size_chars(message) + 16 for message in messages)
    return int(chars / CHARS_PER_TOKEN) + 1


def split(messages: Sequence[Message], pinned: int, kept_turns: int = KEPT_TURNS) -> Parts:
    """Cut a conversation at turns."""
    starts = [i for i, one in enumerate(messages) if i >= pinned and one.role == "assistant"]
    cut = starts[-kept_turns] if len(starts) > kept_turns else pinned
    return Parts(list(messages[:pinned]), list(messages[pinned:cut]), list(messages[cut:]))


def stub_results(parts: Parts, whole: Mapping[str, str], excess_chars: int) -> Shortened:
    """Replace old results by one line each, oldest first, until `excess_chars` are saved."""
    names = _call_names(parts.older)
    saved = count = 0
    older: list[Message] = []
    for message in parts.older:
        size = size_chars(message)
        if message.role == "tool" and saved < excess_chars and size > _SMALL_CHARS:
            message = _stub(message, names, whole)  # noqa: PLW2901 - the message that is kept
            saved += size - size_chars(message)
            count += 1
        older.append(message)
    note = (
        f"{count} old tool results ({saved:,} characters) were replaced by one line each" if count else None
    )
    return Shortened([*parts.opening, *older, *parts.recent], note)


def with_summary(parts: Parts, summary: str) -> Shortened:
    """Put notes in the place of the older turns."""
    notes = Message(role="user", content=SUMMARY_MARK + summary.strip())
    note = f"{len(parts.older)} older messages were replaced by notes of {len(summary):,} characters"
    return Shortened([*parts.opening, notes, *parts.recent], note)


def clip_results(messages: Sequence[Message], limit_bytes: int) -> Shortened:
    """Cut every longer result to its head and tail; media of a cut result go."""
    count = 0
    clipped: list[Message] = []
    for message in messages:
        text = text_of(message)
        if message.role == "tool" and (cut := cut_middle(text, limit_bytes)) is not None:
            message = message.model_copy(update={"content": cut.text})  # noqa: PLW2901
            count += 1
        clipped.append(message)
    note = f"{count} tool results were cut to {limit_bytes:,} bytes each" if count else None
    return Shortened(clipped, note)


def transcript(older: Sequence[Message], limit_chars: int) -> str:
    """The older turns as text for the summary, each part cut so that the whole fits."""
    share = max(limit_chars // max(len(older), 1), 200)
    lines: list[str] = []
    for message in older:
        calls = [f"{call.name} {call.arguments}" for call in message.tool_calls]
        text = "\n".join(filter(None, [text_of(message), *calls]))
        lines.append(f"<{message.role}>\n{_cut(text, share)}\n")
    return "\n".join(lines)[:limit_chars]


def digest(older: Sequence[Message]) -> str:
    """Notes that need no model: which calls were made, and whether they worked."""
    failed = {message.tool_call_id for message in older if message.role == "tool" and message.is_error}
    lines: list[str] = []
    for message in older:
        if message.role == "user":
            lines.append(_cut(text_of(message).removeprefix(SUMMARY_MARK), 2_000))
        lines.extend(
            f"- {call.name} {_cut(call.arguments, 120)}{' (failed)' if call.id in failed else ''}"
            for call in message.tool_calls
        )
    left = len(lines) - _DIGEST_LINES
    head = [f"({left} earlier lines are left out)"] if left > 0 else []
    return "\n".join([*head, *lines[-_DIGEST_LINES:]])


def text_of(message: Message) -> str:
    """A message's text; media are named."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(
        part.text if isinstance(part, TextPart) else f"[{part.type} {part.media_type}]"
        for part in message.content
    )


def clip_arguments(messages: Sequence[Message], limit_chars: int) -> Shortened:
    """Cut the long strings in old calls' arguments; they stay JSON objects."""
    count = 0
    clipped: list[Message] = []
    for message in messages:
        if any(len(call.arguments) > limit_chars for call in message.tool_calls):
            calls = [_clip_call(call, limit_chars) for call in message.tool_calls]
            message = message.model_copy(update={"tool_calls": calls})  # noqa: PLW2901
            count += 1
        clipped.append(message)
    note = f"the arguments of {count} old answers were cut to {limit_chars:,} characters" if count else None
    return Shortened(clipped, note)


def _clip_call(call: WireToolCall, limit_chars: int) -> WireToolCall:
    if len(call.arguments) <= limit_chars:
        return call
    arguments = {
        key: f"{value[:100]} [... cut out of the history: {len(value):,} characters]"
        if isinstance(value, str) and len(value) > 200
        else value
        for key, value in json.loads(call.arguments).items()
    }
    text = json.dumps(arguments, ensure_ascii=False)
    return call.model_copy(update={"arguments": text if len(text) <= limit_chars else "{}"})


def _stub(message: Message, names: Mapping[str, str], whole: Mapping[str, str]) -> Message:
    call_id = message.tool_call_id or ""
    size = len(text_of(message).encode("utf-8", "replace"))
    where = f"; the whole is in {whole[call_id]}" if call_id in whole else "; call again if it is needed"
    name = names.get(call_id, "a tool")
    return message.model_copy(update={"content": f"{_STUB_MARK}{size:,} bytes of {name}{where}]"})


def _call_names(messages: Sequence[Message]) -> dict[str, str]:
    return {call.id: call.name for message in messages for call in message.tool_calls}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
