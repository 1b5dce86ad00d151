"""JSON texts that come back as they were (HW-2)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tool_registry.arguments import strict_json
from tool_registry.definition import schema_text
from worker.protocol.tools import WireToolDefinition

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda one: st.lists(one, max_size=4) | st.dictionaries(texts, one, max_size=4), max_leaves=20
)
objects = st.dictionaries(texts, values, max_size=6)


@given(objects)
def test_a_schema_text_is_its_own_canonical_form(schema: dict[str, Any]) -> None:
    text = schema_text(schema)
    assert schema_text(json.loads(text)) == text
    assert schema_text(strict_json(text)) == text


@given(objects)
def test_a_schema_text_survives_the_wire(schema: dict[str, Any]) -> None:
    text = schema_text(schema)
    wire = WireToolDefinition(name="n", description="d", parameters=json.loads(text))
    assert schema_text(WireToolDefinition.model_validate_json(wire.model_dump_json()).parameters) == text
    assert (
        schema_text(WireToolDefinition.model_validate(json.loads(wire.model_dump_json())).parameters) == text
    )


@given(values, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (",\n", ": ")]))
def test_strict_json_reads_what_the_usual_parser_reads(
    value: Any, ascii_only: bool, separators: tuple[str, str]
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    read = strict_json(text)
    assert json.dumps(read) == json.dumps(json.loads(text))


@given(st.text(alphabet='{}[]",:\\ul0a1e-.+ NaIfinty\n', max_size=40))
def test_strict_json_never_takes_what_the_usual_parser_refuses(text: str) -> None:
    """It gives the same value or a ValueError, whatever it is given."""
    try:
        read = strict_json(text)
    except ValueError:
        return
    assert json.dumps(read) == json.dumps(json.loads(text))
