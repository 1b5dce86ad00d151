"""What a tool promised about its structured content."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tool_registry.errors import InvalidSchema
from tool_registry.schema import CompiledSchema

MAX_PROBLEM_CHARS = 300


class PromisedOutput:
    """Checks structured content against an `outputSchema`, as arguments are checked.

    Nothing is fetched, no schema holds the event loop, and no value is quoted. The schema compiles at the
    first use. One that can't be used is reported like a mismatch: it is the server's fault, and the content
    still reaches the model.
    """

    def __init__(self, schema: str) -> None:
        self._text = schema

    def mismatch(self, structured: Any) -> str | None:
        """What does not fit, in a sentence; None when all does."""
        schema = self._schema
        if isinstance(schema, str):
            return schema
        if schema.accepts(structured):
            return None
        first = schema.masked_violations(structured)[0]
        return f"at {first.pointer or 'the root'}: {first.message}"[:MAX_PROBLEM_CHARS]

    @cached_property
    def _schema(self) -> CompiledSchema | str:
        try:
            return CompiledSchema(self._text)
        except InvalidSchema as error:
            return f"the outputSchema itself can't be used: {error.message}"[:MAX_PROBLEM_CHARS]
