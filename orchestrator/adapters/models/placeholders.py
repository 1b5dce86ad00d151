"""`${name}` in a script: where a captured value is put in; `$${` is a plain `${`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^}]*)\}")


def names_in(value: JsonValue) -> Iterator[str]:
    """The names that a value's texts refer to."""
    if isinstance(value, str):
        yield from (match[1] for match in _PLACEHOLDER.finditer(value) if match[1] is not None)
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from names_in(item)


def fill(value: JsonValue, captured: Mapping[str, JsonValue]) -> JsonValue:
    """Put captured values in; a text that is nothing but `${name}` becomes the value itself."""
    if isinstance(value, list):
        return [fill(item, captured) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, captured) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole and whole[1] is not None:
        return captured[whole[1]]
    return fill_text(value, captured)


def fill_text(text: str, captured: Mapping[str, JsonValue]) -> str:
    """Put captured values into a text; what is not text goes in as compact JSON."""
    return _PLACEHOLDER.sub(lambda match: "${" if match[1] is None else _as_text(captured[match[1]]), text)


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
