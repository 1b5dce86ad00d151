"""What an answer is, and which tool a name means."""

from __future__ import annotations

import pytest

from tests.fakes.transport import calls, says
from worker.answer import Kind, is_cut, judge
from worker.names import resolve, storable_name


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x',
        '{"a"',
        '{"a": ',
        '{"a": tr',
        '{"a": 1',
        "{",
        '{"a": [1, ',
        '{"a": "\\',
        '{"a": "\\u12',
        '"x',
        '{"a": -',
    ],
)
def test_the_beginning_of_a_json_value_is_cut(text: str) -> None:
    """BR-138: whatever the finish reason says."""
    assert is_cut(text)


@pytest.mark.parametrize(
    "text", ["", "  ", "null", "{}", '{"a": 1} trailing', "{command: ls}", "[1]", '{"a": tru}', "```json"]
)
def test_whole_and_malformed_values_are_not_cut(text: str) -> None:
    """BR-140: a malformed value is answered as such."""
    assert not is_cut(text)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (says("x"), Kind.TEXT),
        (says(" \n\t"), Kind.EMPTY),
        (says("", "tool_calls"), Kind.EMPTY),
        (says("x", "length"), Kind.CUT_TEXT),
        (says("", "length"), Kind.CUT_TEXT),
        (says("x", "content_filter"), Kind.FILTERED),
        (calls(("a", "b", "{}")), Kind.CALLS),
        (calls(("a", "b", "{}"), finish_reason="stop"), Kind.CALLS),
        (calls(("a", "b", "{}"), finish_reason="length"), Kind.CUT_CALLS),
        (calls(("a", "b", "{}"), ("c", "d", '{"x')), Kind.CUT_CALLS),
        (calls(("a", "b", "{}"), finish_reason="content_filter"), Kind.FILTERED),
    ],
)
def test_an_answer_is_judged_by_finish_reason_and_content(answer: object, kind: Kind) -> None:
    """BR-138, BR-143."""
    assert judge(answer).kind is kind  # type: ignore[arg-type] - parametrised


def test_calls_beyond_the_bound_are_dropped_and_counted() -> None:
    judged = judge(calls(*[("", "b", "{}")] * 1_000))
    assert (len(judged.calls), judged.dropped_calls) == (128, 872)


KNOWN = ["apply_patch", "fs__search_files", "read_file", "shell"]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("shell", "shell"),
        ("Shell", "shell"),
        ("shell ", "shell"),
        ("functions.shell", "shell"),
        ("functions.Shell", "shell"),
        ("multi_tool_use.parallel", None),
        ("search_files", None),
        ("", None),
        ("   ", None),
        ("functions.", None),
        ("x" * 10_000, None),
    ],
)
def test_only_trivial_forms_of_a_name_are_mapped(written: str, name: str | None) -> None:
    """BR-142."""
    assert resolve(written, KNOWN).name == name


def test_two_tools_that_differ_by_case_are_never_guessed_between() -> None:
    """BR-142: only where exactly one fits."""
    assert resolve("SHELL", ["Shell", "shell"]).name is None
    assert resolve("Shell", ["Shell", "shell"]).name == "Shell"


def test_near_names_are_few_and_none_for_an_empty_name() -> None:
    """BR-142: short; no full catalogue."""
    assert resolve("search_files", KNOWN).near[0] == "fs__search_files"
    assert resolve("", KNOWN).near == ()
    many = [f"tool_{n}" for n in range(200)]
    assert len(resolve("tool", many).near) == 3


@pytest.mark.parametrize(
    ("written", "stored"), [("a.b", "a_b"), ("", "unnamed"), ("é", "_"), ("x" * 100, "x" * 64)]
)
def test_a_stored_name_is_legal_for_every_provider(written: str, stored: str) -> None:
    """BR-142: the unknown name does not poison the history."""
    assert storable_name(written) == stored
