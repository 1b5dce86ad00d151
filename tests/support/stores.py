"""Fixtures: databases with today's schema, empty and private to each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.stores import Stores, open_stores
from tests.fakes.frozen_clock import FrozenClock
from tests.support.jobs import START
from tests.support.postgres import PostgresMissing, PostgresServer, find_programs
from tests.support.sealing import make_sealer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    try:
        programs = find_programs()
    except PostgresMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(f"NOT TESTED: {missing}")
    with PostgresServer(programs) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    name = postgres_server.create()
    anyio.run(_migrate, postgres_server.url(name))
    return name


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "portside.db"
    anyio.run(_migrate, f"sqlite:///{path}")
    return path


async def _migrate(url: str) -> None:
    database = await Database.open(url)
    await database.migrate()
    await database.close()


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A migrated SQLite database of this test's own."""
    path = tmp_path / "portside.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """A migrated PostgreSQL database of this test's own."""
    name = postgres_server.create(postgres_template)
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database; the test runs over SQLite and over PostgreSQL."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_database(sqlite_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(sqlite_url)
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_database(postgres_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(postgres_url)
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_stores(sqlite_url: str) -> AsyncIterator[Stores]:
    """All stores over a SQLite database of this test's own: for tests of services."""
    stores = await open_stores(sqlite_url, sealer=make_sealer(), clock=FrozenClock(START))
    yield stores
    await stores.close()
