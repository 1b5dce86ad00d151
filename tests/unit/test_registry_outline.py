"""What is recorded of large arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand
from tool_registry.errors import CallError
from tool_registry.redaction import Redactor
from tool_registry.truncation import outlined

SECRET = "correct-horse-battery"


LARGE: list[dict[str, Any]] = [
    {"text": "x" * 16_000_000, "path": "a.py"},
    {"list": [{}] * 50_000, "path": "a.py"},
    {"list": [[[]]] * 30_000},
    {str(number): number for number in range(90_000)},
    {"texts": ["y" * 999] * 16_000},
    {"numbers": [10**4000] * 3_000},
    {"n" * 70_000: 1},
]


@pytest.mark.parametrize(
    "arguments", LARGE, ids=["text", "objects", "lists", "names", "texts", "digits", "name"]
)
async def test_a_call_leaves_a_bounded_record_whatever_it_was_given(arguments: dict[str, Any]) -> None:
    """PD-76: a job that calls in vain again and again must not fill the disk with what it sent."""
    stand = CallStand()
    with pytest.raises(CallError):
        await stand.executor.execute("absent", arguments, stand.context)
    (record,) = stand.audit
    assert len(json.dumps(record.params)) < 160_000
    assert "left out" in json.dumps(record.params)


def test_usual_arguments_are_recorded_whole() -> None:
    """PD-76."""
    arguments: dict[str, Any] = {
        "path": "a.py",
        "text": "x" * 50_000,
        "deep": {"list": [1, 2.5, None, True, "two", []]},
    }
    assert outlined(arguments) == arguments
    assert list(outlined({"b": 1, "a": 2})) == ["b", "a"]


async def test_no_part_of_a_secret_is_left_where_a_record_is_shortened() -> None:
    """BR-121: a text is recorded whole, without its secrets, or not at all."""
    for before in range(65_536 - 70, 65_536, 7):
        stand = CallStand(redactor=Redactor({"S": SECRET}))
        with pytest.raises(CallError):
            await stand.executor.execute("absent", {"text": "x" * before + SECRET}, stand.context)
        told = json.dumps(stand.audit[0].params)
        assert SECRET[:6] not in told
