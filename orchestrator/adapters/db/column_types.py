"""Column types that keep a value's meaning the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ESCAPE = "\x1a"
_UNSTORABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")

_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

RowNumber = BigInteger().with_variant(Integer, "sqlite")
"""An integer key that the database counts up; SQLite does so for INTEGER alone."""


class AnyText(TypeDecorator[str]):
    """Any Python string, compared and sorted by code point.

    NUL and lone surrogates, which models and tools do write and PostgreSQL refuses, are stored as the
    SUBSTITUTE character and four hexadecimal digits. Other text is stored as it is.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text without the server's language rules."""
        return Text(collation="C") if dialect.name == "postgresql" else Text()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape."""
        if value is None or value.isprintable():  # most are, and then none of those stands in it
            return value
        return _UNSTORABLE.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Undo the escape."""
        if value is None or _ESCAPE not in value:
            return value
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)


class JsonText(TypeDecorator[Any]):
    """A JSON value as ASCII text: key order kept, any string survives. None is SQL's NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Serialise; NaN and infinities are refused."""
        if value == ():
            return "[]"  # of the columns of a call's record most are
        return None if value is None else _JSON.encode(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Parse."""
        return None if value is None else json.loads(value)


class UtcTime(TypeDecorator[datetime]):
    """A moment, timezone-aware UTC, to the microsecond.

    PostgreSQL has a type for it; SQLite, which has none, holds microseconds since 1970.
    """

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The dialect's own type."""
        return DateTime(timezone=True) if dialect.name == "postgresql" else BigInteger()

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | int | None:
        """To the stored form; a time without a zone is a mistake of the caller."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a timezone")
        return value if dialect.name == "postgresql" else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """To UTC."""
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        return _EPOCH + value * _MICROSECOND
