"""The deciding engine, as it is set up here, against the official JSON-Schema-Test-Suite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tool_registry.errors import InvalidSchema
from tool_registry.schema import compile_validator

CASES = Path(__file__).parents[1] / "data" / "json_schema_suite"
DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
# Groups whose schema names a document elsewhere: it is refused, since nothing is ever fetched.
FETCHING = {
    "draft2020-12": {"refRemote": 15, "dynamicRef": 5, "vocabulary": 2},
    "draft7": {"refRemote": 11},
}
# Single verdicts that differ, with the side taken.
DIFFERENT = {"format": "formats are asserted here, an annotation by default there"}


def groups(draft: str) -> Iterator[dict[str, Any]]:
    for line in (CASES / f"{draft}.jsonl").read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        if isinstance(group["schema"], dict):
            group["schema"] = {"$schema": DRAFTS[draft], **group["schema"]}
        yield group


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_required_case_has_the_official_verdict(draft: str) -> None:
    wrong: list[str] = []
    refused: dict[str, int] = {}
    checked = 0
    for group in groups(draft):
        try:
            validator = compile_validator(group["schema"])
        except InvalidSchema:
            assert "localhost:1234" in json.dumps(group["schema"]), group
            refused[group["file"]] = refused.get(group["file"], 0) + 1
            continue
        for description, data, valid in group["tests"]:
            checked += 1
            if validator.is_valid(data) is not valid:
                wrong.append(f"{group['file']}: {group['group']}: {description}")
    assert refused == FETCHING[draft]
    assert checked > 800
    assert [one for one in wrong if one.partition(":")[0] not in DIFFERENT] == []


def test_invalid_formats_are_refused_where_the_draft_only_notes_them() -> None:
    """BR-087: formats are asserted, whatever the draft."""
    noted = [group for group in groups("draft2020-12") if group["file"] == "format"]
    for group in noted:
        validator = compile_validator(group["schema"])
        for description, data, _valid in group["tests"]:
            if "only an annotation" in description:
                assert not validator.is_valid(data), group["group"]
    assert len(noted) == 19
