"""What a provider says that an answer came to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

_INPUT = ("prompt_tokens", "input_tokens")
_INPUT_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of an answer; `input` has those of the cache in it."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        """Both."""
        return self.input + self.output

    def with_event(self, event: Mapping[str, Any]) -> Tokens:
        """Taken on with an event of the stream, or with the whole answer. Counts only grow."""
        found = tokens_in(event)
        return Tokens(max(self.input, found.input), max(self.output, found.output))


def tokens_in(event: Mapping[str, Any]) -> Tokens:
    """The usage in an answer or event of any dialect; zero where there is none."""
    for holder in (event, _object(event, "response"), _object(event, "message")):
        usage = _object(holder, "usage")
        if usage:
            counted = sum(_number(usage, name) for name in (*_INPUT, *_INPUT_BESIDE))
            return Tokens(counted, sum(_number(usage, name) for name in _OUTPUT))
    return Tokens()


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _number(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
