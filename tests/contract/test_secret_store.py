"""What every `SecretStore` does."""

from __future__ import annotations

import anyio
import pytest
from sqlalchemy import Connection, select, text, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.secrets import SqlSecretStore
from orchestrator.adapters.db.tables import secrets as table
from orchestrator.ports.secrets import SecretName, SecretStore, SecretUnreadable
from tests.fakes.frozen_clock import FrozenClock
from tests.support.jobs import START
from tests.support.sealing import make_sealer


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture
def secrets(database: Database, clock: FrozenClock) -> SecretStore:
    return SqlSecretStore(database, make_sealer(), clock)


@pytest.mark.parametrize("value", ["sk-ab:cd+ef/gh==", "", "\x00", "\ud800", "é" * 100_000])
async def test_a_value_comes_back_as_it_was_set(secrets: SecretStore, value: str):
    await secrets.set("KEY", value)
    assert await secrets.get("KEY") == value


async def test_an_unknown_name_has_no_value(secrets: SecretStore):
    assert await secrets.get("KEY") is None
    assert await secrets.get("KEY\x00") is None
    assert await secrets.delete("KEY") is False


async def test_a_new_value_replaces_the_old_one(secrets: SecretStore, clock: FrozenClock):
    await secrets.set("KEY", "old")
    clock.advance(60)
    await secrets.set("KEY", "new")
    assert await secrets.get("KEY") == "new"
    assert await secrets.names() == [SecretName("KEY", 2, clock.now())]


async def test_names_are_sorted_and_hold_no_value(secrets: SecretStore):
    for name in ("b", "a", "B", "é"):
        await secrets.set(name, f"value of {name}")
    assert [secret.name for secret in await secrets.names()] == ["B", "a", "b", "é"]
    assert "value of" not in repr(await secrets.names())


async def test_a_deleted_value_is_gone(secrets: SecretStore):
    await secrets.set("KEY", "value")
    assert await secrets.delete("KEY") is True
    assert await secrets.get("KEY") is None
    assert await secrets.names() == []


async def test_no_half_of_a_value_is_in_the_database(secrets: SecretStore, database: Database):
    """BR-121: the stored bytes hold neither a value nor a part of it."""
    await secrets.set("KEY", "sk-first-half+second-half")

    def everything(connection: Connection) -> str:
        return repr(connection.execute(select(table)).all())

    found = await database.read(everything)
    assert "KEY" in found
    assert "first" not in found
    assert "second" not in found


async def test_a_value_that_was_copied_to_another_name_does_not_open(
    secrets: SecretStore, database: Database
):
    await secrets.set("A", "of a")
    await secrets.set("B", "of b")
    copied = select(table.c.sealed).where(table.c.name == "A").scalar_subquery()
    await database.write(lambda c: c.execute(update(table).where(table.c.name == "B").values(sealed=copied)))
    with pytest.raises(SecretUnreadable, match="changed or moved"):
        await secrets.get("B")
    assert await secrets.get("A") == "of a"


async def test_an_older_version_that_was_put_back_does_not_open(secrets: SecretStore, database: Database):
    await secrets.set("A", "old")
    old = await database.read(lambda c: c.scalar(select(table.c.sealed)))
    await secrets.set("A", "new")
    await database.write(lambda c: c.execute(update(table).values(sealed=old)))
    with pytest.raises(SecretUnreadable):
        await secrets.get("A")


async def test_a_value_does_not_open_under_another_master_key(
    secrets: SecretStore, database: Database, clock: FrozenClock
):
    await secrets.set("A", "value")
    other = SqlSecretStore(database, make_sealer(8), clock)
    with pytest.raises(SecretUnreadable, match="another master key"):
        await other.get("A")
    await other.set("A", "again")
    assert await other.get("A") == "again"


async def test_values_set_at_once_leave_one_that_opens(
    secrets: SecretStore, database_url: str, clock: FrozenClock
):
    other = await Database.open(database_url)
    async with anyio.create_task_group() as group:
        for number, store in enumerate((secrets, SqlSecretStore(other, make_sealer(), clock)) * 10):
            group.start_soon(store.set, "KEY", f"value {number}")
    await other.close()
    assert str(await secrets.get("KEY")).startswith("value ")
    assert [secret.version for secret in await secrets.names()] == [20]


async def test_a_failing_statement_shows_no_parameters(database: Database):
    """BR-121: the text of a database error leaves the values out."""
    with pytest.raises(Exception, match="no_such_table") as failure:
        await database.write(lambda c: c.execute(text("SELECT :v FROM no_such_table"), {"v": "sk-secret"}))
    assert "sk-secret" not in str(failure.value)
