"""A model's arguments, parsed once and strictly.

Python's parser takes NaN, Infinity and the last of two equal keys; a check could then look at one value
and a tool at another. None of that passes here.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, NoReturn, cast

from pydantic_core import from_json, to_json

from tool_registry.errors import InvalidParams, Violation

MAX_DEPTH = 200
MAX_VALUES = 100_000  # 0.1 s to read, and a second with a refusal of each (measured)

_UNCLEAR = object()
_SHORT_CHARS = 4_096  # and so within Python's own bound of a number's digits
_BRACKETS = re.compile(r"[\[{\]}]")
_ONE_OBJECT = "send the arguments as one JSON object, such as {}"


class _Refused(ValueError):
    """What a parser hook found."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return found


def _constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused(f"{text[:40]} is too large for a number")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite)


def strict_json(text: str) -> Any:
    """Parse JSON; duplicate keys, NaN, Infinity, lone surrogates, absurd depth and crowds are refused.

    A text costs as much time as it holds values, hardly more for its length: 16 MiB of empty objects would
    hold whoever reads them for ten seconds.

    Raises:
        ValueError: with one sentence that says what is wrong.
    """
    _check_measure(text)
    value = _canonical(text) if len(text) <= _SHORT_CHARS else _UNCLEAR
    return _strictly(text) if value is _UNCLEAR else value


def _canonical(text: str) -> Any:
    """The value of a text that is exactly how that value is written; `_UNCLEAR` for every other text.

    Such a text holds no key twice, no NaN and no number that was rounded, and most senders write so.
    Reading and writing it takes a fifth of the time of reading it strictly (measured).
    """
    try:
        raw = text.encode()
        value = from_json(raw, allow_inf_nan=False)
        return value if to_json(value) == raw else _UNCLEAR
    except ValueError:
        return _UNCLEAR


def _strictly(text: str) -> Any:
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except _Refused:
        raise
    except ValueError:
        raise ValueError("a number has too many digits") from None  # Python's own bound, 4,300
    try:
        if not text.isascii():
            text.encode()
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a string holds half of a surrogate pair") from None
    return value


def _check_measure(text: str) -> None:
    """Hold a text to its bounds before anything of it is read.

    Raises:
        ValueError: it is too deep, or holds too many values.
    """
    opened = text.count("[") + text.count("{")
    if opened <= MAX_DEPTH and (len(text) <= MAX_VALUES or opened + text.count(",") < MAX_VALUES):
        return
    bare = _outside_strings(text)
    if _depth(bare) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} levels deep")
    if bare.count("[") + bare.count("{") + bare.count(",") >= MAX_VALUES:
        raise _crowded()


def _outside_strings(text: str) -> str:
    plain = text.replace("\\\\", "").replace('\\"', "")
    if plain.count('"') > 4 * MAX_VALUES:  # two for a key, two for its value
        raise _crowded()
    return "".join(plain.split('"')[::2])


def _crowded() -> ValueError:
    return ValueError(f"it holds more than {MAX_VALUES:,} values; send less at once")


def _depth(bare: str) -> int:
    """The deepest nesting of brackets, in a text without strings; of a crowd, in its beginning."""
    level = deepest = 0
    for token in islice(_BRACKETS.finditer(bare), 2 * MAX_VALUES):
        if token[0] in "[{":
            level += 1
            deepest = max(deepest, level)
        else:
            level -= 1
    return deepest


def parse_arguments(text: str | None) -> dict[str, Any]:
    """The arguments object that a model wrote.

    Empty, blank, absent and `null` arguments are `{}`. Nothing else is guessed: text of text, a list or a
    fenced block is refused.

    Raises:
        InvalidParams: it is not one JSON object, strictly read.
    """
    if text is None or not text.strip():
        return {}
    try:
        value = strict_json(text)
    except ValueError as error:
        raise InvalidParams(
            f"the arguments are not valid JSON: {error}; {_ONE_OBJECT}",
            violations=(Violation("", "json", str(error), expected="a JSON object"),),
        ) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = {list: "an array", str: "a string", bool: "a boolean"}.get(type(value), "a number")  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidParams(
            f"the arguments are {kind}, but an object is required; {_ONE_OBJECT}",
            violations=(Violation("", "type", "must be an object", expected="object", got=kind.split()[-1]),),
        )
    return cast("dict[str, Any]", value)
