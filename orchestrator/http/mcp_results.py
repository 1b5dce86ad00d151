"""What a call gave, as MCP writes it."""

from __future__ import annotations

import json
from typing import Any, cast

from orchestrator.services.executions import CallAnswer
from tool_registry.output import sendable

_KEPT = frozenset({"image", "audio", "resource", "resource_link"})


def result_of(answer: CallAnswer, *, structured: bool) -> dict[str, Any]:
    """A call's answer: its text, then every block that MCP knows as it is, and any other as text.

    Args:
        answer: an output, or a problem. A problem is a failed result that begins with its code.
        structured: the tool promises the shape of its results, so one that is no error is also given as
            JSON. One that had to be cut does not have that shape any more, and is given as an error.
    """
    if answer.output is None:
        return failure(answer.problem or {})
    output = answer.output
    result, failed = output["result"], bool(output["is_error"])
    blocks = cast("list[dict[str, Any]]", output["content"])
    content = [
        _text(_readable(result)),
        *(one if one.get("type") in _KEPT else _text(_readable(one)) for one in blocks),
    ]
    given: dict[str, Any] = {"content": sendable(content), "isError": failed}
    if structured and not failed:
        if isinstance(result, dict):
            given["structuredContent"] = sendable(result)
        else:
            given["isError"] = True
    return given


def failure(problem: dict[str, Any]) -> dict[str, Any]:
    """A call that gave no output: `code: what is wrong (what to do)`, and the problem for programs."""
    hint = problem.get("hint")
    text = f"{problem.get('code', 'internal')}: {problem.get('detail', '')}" + (f" ({hint})" if hint else "")
    return {
        "content": sendable([_text(text)]),
        "isError": True,
        "_meta": {"portside/problem": sendable(problem)},
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
