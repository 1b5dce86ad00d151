"""What a tool answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

from pydantic_core import to_json

from tool_registry.coercion import Adjustment


@dataclass(frozen=True, slots=True)
class Truncation:
    """How much of an output was left out of what the model sees.

    Attributes:
        original_bytes: size of the whole, UTF-8.
        shown_bytes: size of what is shown.
        artifact: where the whole can be read, when it was kept.
    """

    original_bytes: int
    shown_bytes: int
    artifact: str | None = None


def sendable(value: Any) -> Any:
    """The JSON value with every half of a surrogate pair, which UTF-8 can't carry, replaced by `?`."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {sendable(name): sendable(one) for name, one in fields.items()}
    if isinstance(value, list | tuple):
        return [sendable(one) for one in cast("Iterable[Any]", value)]
    return value


@dataclass(slots=True)  # not frozen: see ToolContext
class ToolOutput:
    """A tool's answer; never changed, copies are made instead.

    Attributes:
        result: any JSON value; what the model reads.
        is_error: the tool ran and says that it failed.
        content: blocks that are not text (images, audio, resources), in order, as JSON objects with a
            `type`; each has its line in `result` too.
        cost_usd: what the call cost, when the tool knows.
        duration_ms: wall time of the run, set by the executor.
        raw: the tool's own structured answer, when it differs from `result`.
        truncated: set when `result` is a part of the whole.
        adjustments: what was changed of the arguments before the tool ran, set by the executor.
    """

    result: Any
    is_error: bool = False
    content: tuple[dict[str, Any], ...] = ()
    cost_usd: Decimal | None = None
    duration_ms: int = 0
    raw: Any = None
    truncated: Truncation | None = None
    adjustments: tuple[Adjustment, ...] = ()

    @classmethod
    def refusal(cls, code: str, message: str, **details: Any) -> ToolOutput:
        """A result that says what the tool refused, for the model to act on."""
        return cls({"code": code, "message": message, **details}, is_error=True)

    def text(self) -> str:
        """The result as a model reads it: a string as it is, anything else as compact JSON."""
        if isinstance(self.result, str):
            return self.result
        try:
            return to_json(self.result).decode()
        except ValueError:  # half a surrogate pair, which UTF-8 can't carry
            return json.dumps(self.result, ensure_ascii=False, separators=(",", ":"))

    def with_result(self, result: Any, truncated: Truncation | None = None) -> ToolOutput:
        """The same output with another result."""
        return replace(self, result=result, truncated=truncated or self.truncated)

    def timed(self, duration_ms: int) -> ToolOutput:
        """The same output with its run's wall time."""
        return ToolOutput(
            self.result,
            self.is_error,
            self.content,
            self.cost_usd,
            duration_ms,
            self.raw,
            self.truncated,
            self.adjustments,
        )

    def as_json(self) -> dict[str, Any]:
        """The wire form; absent fields are left out."""
        body: dict[str, Any] = {
            "result": self.result,
            "is_error": self.is_error,
            "content": list(self.content),
            "duration_ms": self.duration_ms,
        }
        if self.cost_usd is not None:
            body["cost_usd"] = str(self.cost_usd)
        if self.raw is not None:
            body["raw"] = self.raw
        if self.truncated is not None:
            body["truncated"] = {
                "original_bytes": self.truncated.original_bytes,
                "shown_bytes": self.truncated.shown_bytes,
                "artifact": self.truncated.artifact,
            }
        if self.adjustments:
            body["adjustments"] = [one.as_json() for one in self.adjustments]
        return body
