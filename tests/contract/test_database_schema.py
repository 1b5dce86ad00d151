"""Migrations make the schema that the code expects, on every database (PD-6)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from orchestrator.adapters.db import schema
from orchestrator.adapters.db.audit import SqlAuditStore
from orchestrator.adapters.db.column_types import AnyText
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.engines import parse_url
from orchestrator.adapters.db.tables_access import metadata
from orchestrator.ports.errors import SchemaTooNew
from tests.support.new_files import written_mode
from tests.support.postgres import PostgresServer


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'empty.db'}"


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = postgres_server.create()
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"empty_{request.param}_url")


async def test_an_empty_database_is_not_current_until_it_is_migrated(empty_url: str):
    database = await Database.open(empty_url)
    assert await database.check() is False
    await database.migrate()
    assert await database.check() is True
    await database.migrate()
    assert await database.check() is True
    await database.close()


async def test_the_migrated_schema_is_the_one_in_the_code(database: Database):
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, metadata)

    assert await database.read(differences) == []


@pytest.mark.postgres
async def test_text_is_compared_by_code_point_on_a_server_of_any_language(postgres_url: str):
    """Alembic's comparison leaves collations out."""
    database = await Database.open(postgres_url)
    query = text(
        "SELECT table_name || '.' || column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND collation_name = 'C'"
    )
    found = await database.read(lambda connection: set(connection.scalars(query)))
    assert found == {
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, AnyText)
    }
    await database.close()


async def test_migrations_that_start_together_take_turns(empty_url: str):
    databases = [await Database.open(empty_url) for _ in range(4)]
    async with anyio.create_task_group() as group:
        for database in databases:
            group.start_soon(database.migrate)
    assert await databases[0].check() is True
    for database in databases:
        await database.close()


def test_a_new_file_is_opened_by_many_processes_at_once(tmp_path: Path) -> None:
    """PD-6: SQLite turns away whoever sets a file's mode beside another; nobody fails for that."""
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as processes:
        for number in range(100):
            modes = processes.map(written_mode, [f"sqlite:///{tmp_path / str(number)}"] * 4)
            assert set(modes) == {"wal"}


async def test_rows_from_before_keep_what_they_say_of_the_schema(empty_url: str):
    database = await Database.open(empty_url)
    await anyio.to_thread.run_sync(schema.upgrade, parse_url(empty_url), "0003")
    columns = (
        "job_id, at, agent, network, tool_name, source, call_id, params, verdict, duration_ms, output_bytes"
    )
    when = "'2026-01-02T03:04:05Z'" if "postgres" in empty_url else "0"

    def insert(connection: Connection) -> None:
        for verdict, rules in (("ok", "[]"), ("invalid_params", '["type"]'), ("tool_not_found", "[]")):
            values = f"'j', {when}, '', '', 't', 'mcp', 'c', '{{}}', '{verdict}', 1, 2"
            connection.exec_driver_sql(f"INSERT INTO audit ({columns}, rules) VALUES ({values}, '{rules}')")

    await database.write(insert)
    await database.migrate()
    rows = await SqlAuditStore(database).read()
    assert [(row.schema_verdict, row.rules) for row in rows] == [
        ("fits", ()),
        ("violates", ("type",)),
        ("unchecked", ()),
    ]
    await database.close()


async def test_a_newer_database_is_refused_and_left_alone(database: Database):
    await database.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    assert await database.check() is False
    with pytest.raises(SchemaTooNew, match="9999"):
        await database.migrate()


async def test_a_failed_migration_leaves_nothing_behind(empty_url: str):
    """Tables and the revision come in one transaction, on SQLite too."""
    database = await Database.open(empty_url)
    await database.write(lambda c: c.execute(text("CREATE TABLE signing_keys (x INTEGER)")))
    with pytest.raises(Exception, match="signing_keys"):
        await database.migrate()
    assert await database.read(lambda c: inspect(c).get_table_names()) == ["signing_keys"]
    await database.write(lambda c: c.execute(text("DROP TABLE signing_keys")))
    await database.migrate()
    assert await database.check() is True
    await database.close()
