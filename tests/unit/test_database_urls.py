"""Which database URLs are taken, and what is said about the others (PD-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.engines import parse_url
from orchestrator.ports.errors import StoreError


@pytest.mark.parametrize(
    ("text", "driver", "database"),
    [
        ("sqlite:////var/lib/portside.db", "sqlite", "/var/lib/portside.db"),
        ("sqlite+aiosqlite:///portside.db", "sqlite", "portside.db"),
        ("postgresql://u:p@h:5433/d", "postgresql+psycopg", "d"),
        ("postgres://u@h/d", "postgresql+psycopg", "d"),
        ("postgresql+asyncpg://u@h/d", "postgresql+psycopg", "d"),
    ],
)
def test_a_url_is_taken_whatever_driver_it_names(text: str, driver: str, database: str):
    url = parse_url(text)
    assert (url.drivername, url.database) == (driver, database)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "can't be read"),
        ("hunter2", "can't be read"),
        ("postgresql://u:hunter2@h:port/d", "can't be read"),
        ("mysql://u:hunter2@h/d", "'mysql' are not supported"),
        ("sqlite://", "needs the path of a file"),
        ("sqlite:///:memory:", "needs the path of a file"),
        ("sqlite:///x?mode=memory", "needs the path of a file"),
    ],
)
def test_another_url_is_refused_without_showing_a_password(text: str, message: str):
    with pytest.raises(StoreError, match=message) as failure:
        parse_url(text)
    assert "hunter2" not in str(failure.value)
    assert failure.value.__cause__ is None


async def test_a_sqlite_file_and_its_companions_are_for_their_owner_alone(tmp_path: Path):
    database = await Database.open(f"sqlite:///{tmp_path}/portside.db")
    await database.migrate()
    assert await database.check()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}  # noqa: ASYNC240
    assert modes == {"portside.db": 0o600, "portside.db-wal": 0o600, "portside.db-shm": 0o600}
    await database.close()


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(StoreError, match=r"missing/portside\.db can't be opened: No such file"):
        await Database.open(f"sqlite:///{tmp_path}/missing/portside.db")
