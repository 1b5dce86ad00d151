"""A server's `tools/call` answer as a `ToolOutput`: nothing dropped silently, order kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol, cast

from tool_registry.output import ToolOutput

MAX_NOTE_CHARS = 500
_COMPARED_CHARS = 1_000_000
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class OutputCheck(Protocol):
    """Compares structured content with what the tool promised."""

    def mismatch(self, structured: Any) -> str | None:
        """What does not fit, in a sentence; None when all does."""
        ...


def to_output(answer: Mapping[str, Any], check: OutputCheck | None) -> ToolOutput:
    """Translate one answer.

    The result is the text of all blocks in order, where a block that is not text is one line that names it;
    images, audio and resources are also in `content`. Structured content is `raw`; the model sees it too
    where the text does not carry it already. A failed tool's text is exactly what the server said.

    Args:
        answer: the JSON object the server sent.
        check: what the tool promised; not applied to failures.
    """
    if answer.get("resultType") == "input_required":
        return ToolOutput.refusal(
            "input_required", "the server asks for a person's input before it answers, which is not supported"
        )
    is_error = answer.get("isError") is True
    lines: list[str] = []
    content: list[dict[str, Any]] = []
    for block in _blocks(answer.get("content")):
        line, kept = _show(block)
        lines.append(line)
        if kept is not None:
            content.append(kept)
    structured, note = _structured(answer, is_error=is_error, check=check)
    result: Any = "\n".join(lines)
    if structured is not None and not (is_error and lines) and not _says_the_same(result, structured):
        result = structured if not lines and not note else _joined(result, _compact(structured))
    elif is_error and not result.strip():
        result = "the tool failed and gave no reason"
    if note:
        result = _joined(result, note)
    raw = None if structured is result else structured
    return ToolOutput(result, is_error=is_error, content=tuple(content), raw=raw)


def _structured(
    answer: Mapping[str, Any], *, is_error: bool, check: OutputCheck | None
) -> tuple[Any, str | None]:
    """The structured content, and a note about what is wrong with it."""
    structured = answer.get("structuredContent")
    if structured is not None:
        try:
            _compact(structured)
        except (ValueError, RecursionError):
            return (
                None,
                "[note: the structured content holds NaN or Infinity, which JSON can't carry; left out]",
            )
    if is_error or check is None:
        return structured, None
    if "structuredContent" not in answer:
        return None, "[note: the tool promises structured content (outputSchema) and gave none]"
    problem = check.mismatch(structured)
    if problem is None:
        return structured, None
    return structured, f"[note: the structured content does not fit the tool's outputSchema: {problem}]"


def _blocks(content: Any) -> list[Any]:
    if content is None:
        return []
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _show(block: Any) -> tuple[str, dict[str, Any] | None]:
    """What the model reads of a block, and what is kept of it beside the text."""
    if not isinstance(block, dict):
        return f"[content that is no block: {str(block)[:MAX_NOTE_CHARS]}]", None
    body = cast("dict[str, Any]", block)
    kind = body.get("type")
    if kind == "text" and isinstance(body.get("text"), str):
        return body["text"], None
    if kind in {"image", "audio"}:
        return _show_data(str(kind), body.get("data"), body, body)
    if kind == "resource" and isinstance(body.get("resource"), dict):
        return _show_resource(body, cast("dict[str, Any]", body["resource"]))
    if kind == "resource_link":
        return _line("resource_link", body, str(body.get("uri", "")), body.get("name"), _size(body)), body
    return f"[content of an unknown kind: {_excerpt(body)}]", None


def _show_resource(block: dict[str, Any], resource: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    uri = str(resource.get("uri", ""))
    text = resource.get("text")
    if isinstance(text, str):
        return f"{_line('resource', resource, uri)}\n{text}", block
    return _show_data("resource", resource.get("blob"), resource, block, uri)


def _show_data(
    kind: str, data: Any, described: dict[str, Any], block: dict[str, Any], *names: str
) -> tuple[str, dict[str, Any] | None]:
    """A block that carries base64."""
    if not isinstance(data, str) or len(data) % 4 or not _BASE64.fullmatch(data):
        return _line(kind, described, *names, "its data is not valid base64; left out"), None
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return _line(kind, described, *names, f"{size:,} bytes"), block


def _line(kind: str, described: Mapping[str, Any], *parts: Any) -> str:
    shown = [str(part)[:MAX_NOTE_CHARS] for part in (described.get("mimeType"), *parts) if part]
    return f"[{kind}: {', '.join(shown)}]"


def _size(link: Mapping[str, Any]) -> str | None:
    size = link.get("size")
    return f"{size:,} bytes" if isinstance(size, int) else None


def _excerpt(body: Mapping[str, Any]) -> str:
    shown = {
        key: value if not isinstance(value, str) else value[:100] for key, value in list(body.items())[:10]
    }
    return str(shown)[:MAX_NOTE_CHARS]


def _says_the_same(text: str, structured: Any) -> bool:
    """Whether the text is the structured content's JSON, as the specification recommends."""
    if not text or len(text) > _COMPARED_CHARS or text[0] not in '{["0123456789-tfn':
        return False
    try:
        return json.loads(text) == structured
    except (ValueError, RecursionError):
        return False


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _joined(text: Any, more: str) -> str:
    shown = text if isinstance(text, str) else _compact(text)
    return f"{shown}\n{more}" if shown else more
