"""What a tool promised about its structured content."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import jsonschema_rs

MAX_PROBLEM_CHARS = 300
_BACKTRACK_LIMIT = 100_000


class PromisedOutput:
    """Checks structured content against an `outputSchema`. Nothing is ever fetched for it.

    The schema compiles at the first use. One that can't be used is reported like a mismatch: it is the
    server's fault, and the content still reaches the model.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema

    def mismatch(self, structured: Any) -> str | None:
        """What does not fit, in a sentence; None when all does."""
        validator = self._validator
        if isinstance(validator, str):
            return validator
        try:
            error = next(iter(validator.iter_errors(structured)), None)
        except (ValueError, UnicodeEncodeError) as reason:
            return str(reason)[:MAX_PROBLEM_CHARS]
        if error is None:
            return None
        pointer = "".join(f"/{part}" for part in error.instance_path)
        return f"at {pointer or 'the root'}: {error.message}"[:MAX_PROBLEM_CHARS]

    @cached_property
    def _validator(self) -> Any:
        try:
            return jsonschema_rs.validator_for(
                json.loads(self._schema),
                offline=True,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT),
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            return f"the outputSchema itself can't be used: {str(error).partition(chr(10))[0]}"[
                :MAX_PROBLEM_CHARS
            ]
