"""Outputs of tools as MCP writes them."""

from __future__ import annotations

from typing import Any

from tool_registry.output import ToolOutput, sendable
from worker.history import compact_json

_KEPT = frozenset({"image", "audio", "resource", "resource_link"})


def result_of(output: ToolOutput) -> dict[str, Any]:
    """A tool's answer: its text, then every block that MCP knows as it is, and any other as text."""
    content: list[dict[str, Any]] = [text_block(output.text())]
    for block in output.content:
        kept = block.get("type") in _KEPT
        content.append(dict(block) if kept else text_block(compact_json(block)))
    return {"content": sendable(content), "isError": output.is_error}


def failure(text: str) -> dict[str, Any]:
    """A call that gave no output, in words for the model."""
    return {"content": [text_block(text)], "isError": True}


def text_block(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": sendable(text)}
