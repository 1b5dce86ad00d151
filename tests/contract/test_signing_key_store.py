"""What every `SigningKeyStore` does (PD-7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.signing_keys import SqlSigningKeyStore
from orchestrator.adapters.db.tables import signing_keys as table
from orchestrator.ports.errors import AlreadyExists
from orchestrator.ports.secrets import SecretUnreadable
from orchestrator.ports.signing_keys import SigningKey, SigningKeyStore
from tests.support.jobs import START
from tests.support.sealing import make_sealer


@pytest.fixture
def keys(database: Database) -> SigningKeyStore:
    return SqlSigningKeyStore(database, make_sealer())


def make_key(kid: str, age_s: int = 0) -> SigningKey:
    return SigningKey(kid, f"-----BEGIN of {kid}", START - timedelta(seconds=age_s))


async def test_keys_come_back_newest_first(keys: SigningKeyStore):
    for key in (make_key("k2", 5), make_key("k3"), make_key("k1", 9)):
        await keys.add(key)
    assert await keys.list() == [make_key("k3"), make_key("k2", 5), make_key("k1", 9)]


async def test_an_id_is_stored_once(keys: SigningKeyStore):
    await keys.add(make_key("k1"))
    with pytest.raises(AlreadyExists):
        await keys.add(make_key("k1", 5))
    assert await keys.list() == [make_key("k1")]


async def test_a_retired_key_keeps_its_first_date(keys: SigningKeyStore):
    await keys.add(make_key("k1"))
    await keys.retire("k1", START)
    await keys.retire("k1", START + timedelta(days=1))
    await keys.retire("nobody", START)
    assert [key.retired_at for key in await keys.list()] == [START]


async def test_a_deleted_key_is_gone(keys: SigningKeyStore):
    await keys.add(make_key("k1"))
    await keys.delete("k1")
    await keys.delete("k1")
    assert await keys.list() == []


async def test_the_private_half_is_sealed_for_its_own_id(keys: SigningKeyStore, database: Database):
    await keys.add(make_key("k1"))
    await keys.add(make_key("k2"))
    stored = await database.read(lambda c: c.scalar(select(table.c.sealed).where(table.c.kid == "k1")))
    assert isinstance(stored, bytes)
    assert b"BEGIN" not in stored
    await database.write(lambda c: c.execute(update(table).where(table.c.kid == "k2").values(sealed=stored)))
    with pytest.raises(SecretUnreadable):
        await keys.list()
