"""A model's argument text, read strictly."""

from __future__ import annotations

import json
import time

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.arguments import MAX_DEPTH, MAX_VALUES, parse_arguments, strict_json
from tool_registry.errors import InvalidParams, Outcome

PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("text", ['{"path":"a"}', ' {"path":"a"}\n', '\t{"path" : "\\u0061"}'])
def test_an_object_is_taken_with_white_space_around_it(text: str) -> None:
    """BR-074: forms 1 and 6."""
    assert parse_arguments(text) == {"path": "a"}


@pytest.mark.parametrize(
    "text",
    [
        '"{\\"path\\":\\"a\\"}"',
        '"\\"{\\\\\\"path\\\\\\"}\\""',
        "[1]",
        '"a"',
        "5",
        "true",
        '{"path":"a"} trailing',
        '{"path":"a"}{"path":"b"}',
        '```json\n{"path":"a"}\n```',
        "{'path': 'a'}",
        "{path: 1}",
        "\ufeff{}",
        "{",
    ],
)
def test_anything_but_one_object_is_refused_with_what_to_send(text: str) -> None:
    """BR-074: text of text, lists, scalars, trailing text and fenced blocks."""
    with pytest.raises(InvalidParams, match="one JSON object") as caught:
        parse_arguments(text)
    assert caught.value.outcome is Outcome.NOT_RUN
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("text", ["", "   ", "\n\t", None, "null", " null ", "{}", "{ }"])
async def test_no_arguments_are_an_empty_object(text: str | None) -> None:
    """BR-081: they run a tool that needs none; one that does says what is required, not a parse error."""
    assert parse_arguments(text) == {}
    with pytest.raises(InvalidParams, match="'path' is required") as caught:
        await CallStand(RegistryTool(schema=PATH)).executor.execute(
            "tool", parse_arguments(text), CallStand().context
        )
    assert "a JSON object" in caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"path":"safe.txt","path":"../evil"}', "'path' stands twice"),
        ('{"a":{"b":[{"c":1,"c":1}]}}', "'c' stands twice"),
        ('{"n":NaN}', "NaN is not a JSON number"),
        ('{"n":Infinity}', "Infinity is not a JSON number"),
        ('{"n":-Infinity}', "-Infinity is not a JSON number"),
        ('{"n":1e999}', "too large"),
        ('{"n":-1e999}', "too large"),
        ('{"n":' + "9" * 5_000 + "}", "too many digits"),
        ('{"s":"\\ud800"}', "surrogate"),
        ('{"\\udc00":1}', "surrogate"),
        ('{"s":"\ud800"}', "surrogate"),
        ('{"n":1,}', "line 1"),
        ('{"n":1 /*c*/}', "line 1"),
        ('{"s":"a\nb"}', "control character"),
        ("{" + '"a":{' * 300 + "}" * 301, f"more than {MAX_DEPTH} levels"),
        ('{"a":' + "[" * 100_000, f"more than {MAX_DEPTH} levels"),
    ],
)
def test_what_json_can_not_hold_is_refused_with_the_reason(text: str, reason: str) -> None:
    """BR-082."""
    with pytest.raises(ValueError, match=reason):
        strict_json(text)
    with pytest.raises(InvalidParams) as caught:
        parse_arguments(text)
    assert len(caught.value.message) < 500
    assert [one.rule for one in caught.value.violations] == ["json"]


def test_brackets_inside_text_are_no_depth() -> None:
    text = json.dumps({"code": '[{"' * 5_000 + "\\\\" * 99, "more": ["[" * 300, "\\"]})
    assert strict_json(text) == json.loads(text)


def test_the_greatest_depth_is_taken() -> None:
    text = '{"a":' * (MAX_DEPTH - 1) + "{}" + "}" * (MAX_DEPTH - 1)
    assert strict_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "{}," * MAX_VALUES + "{}]",
        "[" + "1," * MAX_VALUES + "1]",
        "[" + '"",' * 3 * MAX_VALUES + '""]',
        "{" + ",".join(f'"{number}":[]' for number in range(MAX_VALUES)) + "}",
        "[" + "[]," * MAX_VALUES + "[]]",
        '["\\\\","\\"",' + "1," * MAX_VALUES + "1]",
    ],
    ids=["objects", "numbers", "texts", "keys", "lists", "beside-escapes"],
)
def test_a_crowd_of_values_is_refused_before_it_is_read(text: str) -> None:
    """PD-76: each value costs its reader time; who reads is the process that serves everybody."""
    with pytest.raises(ValueError, match=f"more than {MAX_VALUES:,} values; send less"):
        strict_json(text)


@pytest.mark.parametrize(
    "value",
    [
        {"code": '{"x": [1, 2, 3]},\n' * 50_000, "more": ["\\", '\\"', '"']},
        {"numbers": list(range(MAX_VALUES - 2))},
        [{"key": "text"}] * (MAX_VALUES // 2 - 1),
    ],
    ids=["text", "numbers", "objects"],
)
def test_as_many_values_as_the_bound_allows_are_read_and_text_counts_for_one(value: object) -> None:
    """PD-76."""
    assert strict_json(json.dumps(value)) == value
    assert strict_json(json.dumps(value, separators=(",", ":"))) == value


def test_true_pairs_and_large_numbers_pass() -> None:
    text = '{"s":"\\ud83d\\ude00 😀","n":123456789012345678901234567890,"f":1e308,"z":-0.0}'
    assert strict_json(text) == json.loads(text)


def test_a_large_argument_full_of_brackets_is_read_in_good_time() -> None:
    text = json.dumps({"code": '{"x": [1, 2]}\n' * 200_000})
    started = time.thread_time()
    strict_json(text)
    assert time.thread_time() - started < 3.0
