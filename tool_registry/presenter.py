"""What a call gave, made fit to show: without secrets, within bounds, and nothing dropped silently."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Protocol

from tool_registry.context import ToolContext
from tool_registry.errors import CallError
from tool_registry.output import ToolOutput, Truncation, sendable
from tool_registry.redaction import Redactor
from tool_registry.truncation import cut_middle

_MAX_CONTENT_BYTES = 5 * 1024 * 1024
_MAX_BLOCKS = 100
_MAX_ERROR_CHARS = 4_000


class OutputKeeper(Protocol):
    """Keeps whole what is too large to show."""

    async def keep(self, context: ToolContext, data: bytes, media_type: str) -> str:
        """Store it for the calling job; answers the artifact's id."""
        ...


class Presenter:
    """Redacts and bounds outputs and errors.

    Args:
        redactor: knows the secrets.
        keeper: where large outputs go; None cuts them for good.
        max_output_bytes: of an output's text.
    """

    def __init__(self, redactor: Redactor, keeper: OutputKeeper | None, *, max_output_bytes: int) -> None:
        self._redactor = redactor
        self._keeper = keeper
        self._max_output_bytes = max_output_bytes

    async def shown(self, output: ToolOutput, context: ToolContext) -> tuple[ToolOutput, int]:
        """The output without secrets and within its bounds, and the bytes of its text."""
        text = output.text()
        ready = text.isascii() and len(text) <= self._max_output_bytes and not output.content
        if not ready or output.raw is not None or self._redactor.suspects(text):
            output = await self._bounded(self._redacted(output), context)
            text = output.text()
        return output, len(text) if text.isascii() else len(text.encode("utf-8", "replace"))

    def clean(self, error: CallError) -> None:
        """Take secrets out of what a failed call says, and bound it: a tool's own words may be in it."""
        clean = self._redactor.text
        error.message = clean(sendable(error.message))[:_MAX_ERROR_CHARS]
        error.args = (error.message,)
        error.hint = clean(error.hint) if error.hint else error.hint
        error.cause = clean(error.cause) if error.cause else error.cause
        error.violations = tuple(
            replace(
                one,
                pointer=clean(one.pointer),
                message=clean(one.message),
                expected=clean(one.expected) if one.expected else one.expected,
                got=clean(one.got) if one.got else one.got,
            )
            for one in error.violations
        )

    def _redacted(self, output: ToolOutput) -> ToolOutput:
        redactor = self._redactor
        result = redactor.value(output.result)
        if not output.content and output.raw is None:
            return output if result == output.result else replace(output, result=result)
        content = tuple(redactor.value(block) for block in output.content)
        return replace(output, result=result, content=content, raw=redactor.value(output.raw))

    async def _bounded(self, output: ToolOutput, context: ToolContext) -> ToolOutput:
        output = _carriable(await self._bounded_content(output, context))
        text = output.text()
        limit = self._max_output_bytes
        if len(text) * 4 <= limit or cut_middle(text, limit) is None:
            return output
        artifact = None
        if self._keeper is not None:
            artifact = await self._keeper.keep(
                context, text.encode("utf-8", "replace"), "text/plain; charset=utf-8"
            )
        cut = cut_middle(text, limit, where=f"the whole is artifact {artifact}" if artifact else None)
        if cut is None:
            return output
        before = output.truncated or Truncation(cut.original_bytes, cut.shown_bytes)
        shown = Truncation(before.original_bytes, cut.shown_bytes, artifact or before.artifact)
        return replace(output, result=cut.text, raw=None, truncated=shown)

    async def _bounded_content(self, output: ToolOutput, context: ToolContext) -> ToolOutput:
        """Blocks beyond the bound become artifacts and a note; what fits stays, in order."""
        if not output.content:
            return output
        room = _MAX_CONTENT_BYTES
        kept: list[dict[str, Any]] = []
        for block in output.content[:_MAX_BLOCKS]:
            data = json.dumps(block).encode()
            if len(data) <= room:
                room -= len(data)
                kept.append(sendable(block) if b"\\ud" in data else block)
            else:
                kept.append(await self._omitted(block.get("type"), data, context))
        rest = output.content[_MAX_BLOCKS:]
        if rest:
            data = json.dumps(rest).encode()
            kept.append(await self._omitted(f"{len(rest)} more blocks", data, context))
        return replace(output, content=tuple(kept))

    async def _omitted(self, was: Any, data: bytes, context: ToolContext) -> dict[str, Any]:
        note: dict[str, Any] = {"type": "omitted", "was": was, "size_bytes": len(data)}
        if self._keeper is not None:
            note["artifact"] = await self._keeper.keep(context, data, "application/json")
        return note


def _carriable(output: ToolOutput) -> ToolOutput:
    """Without halves of surrogate pairs, and without structured content beyond the bound of other blocks."""
    if output.raw is not None:
        data = json.dumps(output.raw)
        if len(data) > _MAX_CONTENT_BYTES:
            output = replace(output, raw=None)
        elif "\\ud" in data:
            output = replace(output, raw=sendable(output.raw))
    text = output.text()
    return output if text.isascii() else replace(output, result=sendable(output.result))
