"""Comparing what a script's turn expects with what the request shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from orchestrator.adapters.models.conversation import newest_result, text_of
from orchestrator.adapters.models.script import Expectation, ResultExpectation
from orchestrator.ports.models import ModelMessage, ModelRequest, ModelTool

_SHOWN_CHARS = 600


def first_unmet(expect: Expectation, request: ModelRequest) -> str | None:
    """The first expectation that is not met: what was expected, and what was shown."""
    return next(_unmet(expect, request), None)


def _unmet(expect: Expectation, request: ModelRequest) -> Iterator[str]:
    tools = {tool.name: tool for tool in request.tools or ()}
    shown = ", ".join(tools) or "no tools"
    yield from (f"expected the tool {name}; shown: {shown}" for name in expect.tools if name not in tools)
    yield from (f"expected no tool {name}; shown: {shown}" for name in expect.tools_absent if name in tools)
    for name, schema in expect.schemas.items():
        if name not in tools:
            yield f"expected the tool {name}; shown: {shown}"
        else:
            yield from _unmet_schema(tools[name], schema)
    for result in expect.last_tool_result:
        yield from _unmet_result(result, request.messages)
    texts = [text_of(message) for message in request.messages]
    for wanted in expect.messages_contain:
        if not any(wanted in text for text in texts):
            yield f"expected a message with {wanted!r}; shown: {_cut(' | '.join(texts))}"
    systems = sum(message.role == "system" for message in request.messages)
    if expect.system_messages not in {None, systems}:
        yield f"expected {expect.system_messages} system messages; shown: {systems}"


def _unmet_schema(tool: ModelTool, schema: dict[str, JsonValue]) -> Iterator[str]:
    wanted = _compact(schema)
    if tool.parameters_json != wanted:
        same = json.loads(tool.parameters_json) == schema
        hint = " (the same values in another order)" if same else ""
        yield f"expected {tool.name}'s schema {_cut(wanted)}; shown{hint}: {_cut(tool.parameters_json)}"


def _unmet_result(expect: ResultExpectation, messages: Sequence[ModelMessage]) -> Iterator[str]:
    of_tool = f" of {expect.tool}" if expect.tool else ""
    shown = newest_result(messages, expect.tool)
    if shown is None:
        yield f"expected a tool result{of_tool}; shown: none"
        return
    if expect.is_error not in {None, shown.is_error}:
        kind = "a failed" if expect.is_error else "a successful"
        yield f"expected {kind} tool result{of_tool}; shown: {_cut(shown.text)}"
    for wanted in expect.contains:
        if wanted not in shown.text:
            yield f"expected a tool result{of_tool} with {wanted!r}; shown: {_cut(shown.text)}"
    if "equals" in expect.model_fields_set and not _equal(shown.text, expect.equals):
        yield f"expected the tool result{of_tool} {_cut(_compact(expect.equals))}; shown: {_cut(shown.text)}"
    if expect.matches is not None and not re.search(expect.matches, shown.text):
        yield f"expected a tool result{of_tool} like {expect.matches!r}; shown: {_cut(shown.text)}"


def _equal(text: str, wanted: JsonValue) -> bool:
    if text == wanted:
        return True
    try:
        return _canonical(json.loads(text)) == _canonical(wanted)
    except ValueError:  # a result that is not JSON equals nothing but its own text
        return False


def _canonical(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def _compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"
