"""A server's answer as a tool output."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tool_registry.mcp.output_schema import PromisedOutput
from tool_registry.mcp.result import to_output

WITH_ID = PromisedOutput('{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}')


def _text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_every_kind_of_block_is_shown_in_order_and_kept():
    """BR-064: nothing is dropped silently; links are not fetched."""
    content: list[Any] = [
        _text("downloaded"),
        {
            "type": "resource",
            "resource": {"uri": "file:///w/a.txt", "mimeType": "text/plain", "text": "BODY-42"},
        },
        {
            "type": "resource",
            "resource": {"uri": "file:///w/a.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="},
        },
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {
            "type": "resource_link",
            "uri": "https://h.example/x",
            "name": "x",
            "mimeType": "text/csv",
            "size": 9,
        },
        {"type": "future_kind", "foo": 1},
    ]
    output = to_output({"content": content}, None)
    assert output.result.splitlines() == [
        "downloaded",
        "[resource: text/plain, file:///w/a.txt]",
        "BODY-42",
        "[resource: application/pdf, file:///w/a.pdf, 5 bytes]",
        "[image: image/png, 8 bytes]",
        "[audio: audio/wav, 4 bytes]",
        "[resource_link: text/csv, https://h.example/x, x, 9 bytes]",
        "[content of an unknown kind: {'type': 'future_kind', 'foo': 1}]",
    ]
    assert [block["type"] for block in output.content] == [
        "resource",
        "resource",
        "image",
        "audio",
        "resource_link",
    ]
    assert not output.is_error


@pytest.mark.parametrize("data", ["not base64!", "abc", None, 5])
def test_bad_base64_is_noted_and_left_out(data: Any):
    """BR-064: a note, not an exception."""
    output = to_output({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}, None)
    assert output.result == "[image: image/png, its data is not valid base64; left out]"
    assert output.content == ()


@pytest.mark.parametrize(
    "content", [None, [], "loose", [3], {"type": "text", "text": "alone"}, [{"type": "text"}]]
)
def test_content_of_any_shape_gives_an_output(content: Any):
    """BR-064: malformed blocks are named."""
    assert isinstance(to_output({"content": content}, None).result, str)


def test_a_failure_is_exactly_its_text_and_held_to_no_schema():
    """BR-062: (a) without and (b) with structured content that does not fit."""
    plain = to_output({"isError": True, "content": [_text("quota exceeded, retry after 60 s")]}, WITH_ID)
    assert (plain.result, plain.is_error) == ("quota exceeded, retry after 60 s", True)
    answer = {"isError": True, "content": [_text("no such id")], "structuredContent": {"error": {"code": 4}}}
    structured = to_output(answer, WITH_ID)
    assert (structured.result, structured.is_error) == ("no such id", True)
    assert structured.raw == {"error": {"code": 4}}


def test_a_failure_without_words_still_says_something():
    assert to_output({"isError": True, "content": []}, None).result == "the tool failed and gave no reason"
    assert to_output({"isError": True, "content": [], "structuredContent": {"a": 1}}, None).result == {"a": 1}


def test_structured_content_that_the_text_repeats_is_shown_once():
    answer = {"content": [_text('{\n "id": 3\n}')], "structuredContent": {"id": 3}}
    output = to_output(answer, WITH_ID)
    assert output.result == '{\n "id": 3\n}'
    assert output.raw == {"id": 3}


def test_structured_content_that_the_text_does_not_carry_is_added():
    output = to_output({"content": [_text("found it")], "structuredContent": {"id": 3}}, WITH_ID)
    assert output.result == 'found it\n{"id":3}'


def test_structured_content_alone_is_the_result():
    output = to_output({"content": [], "structuredContent": {"id": 3}}, WITH_ID)
    assert output.result == {"id": 3}
    assert output.raw is None


def test_a_mismatch_with_the_output_schema_is_reported_beside_the_content():
    """Design 04: reported, not hidden."""
    output = to_output({"content": [], "structuredContent": {"id": "x"}}, WITH_ID)
    assert not output.is_error
    assert output.raw == {"id": "x"}
    assert '{"id":"x"}' in output.result
    assert "does not fit the tool's outputSchema: at /id" in output.result


def test_promised_structured_content_that_is_missing_is_reported():
    output = to_output({"content": [_text("done")]}, WITH_ID)
    assert output.result.startswith("done\n[note: the tool promises structured content")


def test_an_output_schema_that_is_no_schema_does_not_lose_the_content():
    output = to_output({"content": [_text("done")], "structuredContent": {}}, PromisedOutput('{"type": 12}'))
    assert "done" in output.result
    assert "outputSchema itself can't be used" in output.result


def test_an_output_schema_can_not_hold_the_event_loop():
    """Doubling references are refused; deep content in a recursive schema is answered at once."""
    chain: dict[str, Any] = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(40)}
    chain["L40"] = {}
    doubling = {"type": "object", "properties": {"v": {"$ref": "#/$defs/L0"}}, "$defs": chain}
    kinds = [{"properties": {"c": {"$ref": "#"}}, "required": [name]} for name in "xy"]
    content: dict[str, Any] = {}
    for _ in range(100):
        content = {"c": content}
    started = time.thread_time()
    assert "multiply" in str(PromisedOutput(json.dumps(doubling)).mismatch({"v": 1}))
    assert PromisedOutput(json.dumps({"type": "object", "anyOf": kinds})).mismatch(content)
    assert time.thread_time() - started < 5


def test_a_mismatch_quotes_no_value():
    assert "hunter2" not in str(WITH_ID.mismatch({"id": "hunter2"}))


def test_an_output_schema_is_never_fetched():
    output = to_output(
        {"content": [], "structuredContent": {}}, PromisedOutput('{"$ref": "http://127.0.0.1:9/x.json"}')
    )
    assert "can't be used" in output.result


def test_numbers_that_json_can_not_carry_are_left_out_with_a_note():
    output = to_output({"content": [_text("nan")], "structuredContent": {"x": float("nan")}}, None)
    assert "NaN or Infinity" in output.result
    json.dumps(output.as_json(), allow_nan=False)


def test_a_question_to_a_person_is_a_failed_result():
    output = to_output({"resultType": "input_required", "inputRequests": {}}, None)
    assert output.is_error
    assert output.result["code"] == "input_required"
