"""Stored values come back as they were, whatever they hold (PD-6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import Dialect
from sqlalchemy.dialects.postgresql import dialect as postgresql
from sqlalchemy.dialects.sqlite import dialect as sqlite

from orchestrator.adapters.db.column_types import AnyText, JsonText, UtcTime

DIALECT: Dialect = sqlite()
POSTGRES: Dialect = postgresql()
any_text = st.text(st.characters(exclude_categories=()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
    max_leaves=20,
)


def stored_text(text: str) -> str:
    stored = AnyText().process_bind_param(text, DIALECT)
    assert stored is not None
    return stored


@given(any_text)
@example("\x1a0000")
@example("\x00\x1a\ud800\U0010ffff")
def test_any_text_survives(text: str):
    stored = stored_text(text)
    assert "\x00" not in stored
    stored.encode()  # fails for a lone surrogate
    assert AnyText().process_result_value(stored, DIALECT) == text


@given(any_text, any_text)
@example("\x00", "\x1a0000")
def test_different_texts_are_stored_differently(one: str, other: str):
    assert (stored_text(one) == stored_text(other)) == (one == other)


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"))))
def test_ordinary_text_is_stored_as_it_is(text: str):
    assert stored_text(text) == text


@given(json_values)
def test_json_survives(value: object):
    stored = JsonText().process_bind_param(value, DIALECT)
    if stored is not None:
        assert stored.isascii()
        assert "\x00" not in stored
    assert JsonText().process_result_value(stored, DIALECT) == value


@pytest.mark.parametrize("value", [float("nan"), [float("inf")]])
def test_numbers_that_json_does_not_have_are_refused(value: object):
    with pytest.raises(ValueError, match="Out of range"):
        JsonText().process_bind_param(value, DIALECT)


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=offsets))  # noqa: DTZ001
def test_a_moment_survives_to_the_microsecond_and_comes_back_in_utc(moment: datetime):
    for dialect in (DIALECT, POSTGRES):
        stored = UtcTime().process_bind_param(moment, dialect)
        back = UtcTime().process_result_value(stored, dialect)
        assert back == moment
        assert back is not None
        assert back.tzinfo is UTC


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="timezone"):
        UtcTime().process_bind_param(datetime(2026, 1, 1), DIALECT)  # noqa: DTZ001
