"""PD-64: what was done to messages behind the hub's back is found, in either database."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.adapters.db.signing_keys import SqlSigningKeyStore
from orchestrator.adapters.db.tables_network import network_deliveries, network_messages, network_threads
from orchestrator.domain.network.identities import NetworkName, ThreadId
from orchestrator.domain.network.signing import signed_bytes
from orchestrator.services.message_keys import MessageKeys
from orchestrator.services.network_signatures import NetworkSignatures, Verdict
from tests.support.networks import CountedIds, SetClock, World
from tests.support.sealing import make_sealer

MESSAGES = network_messages.c
CHANGED = "it was changed, or not signed by this hub"


class Signed:
    """Two agents that talk, and somebody with a hand in the database."""

    def __init__(self, database: Database, keys: MessageKeys) -> None:
        self.database = database
        self.keys = keys
        self.store = SqlNetworkStore(database, keys)
        self.world = World(self.store)
        self.signatures = NetworkSignatures(self.store, keys)
        self.thread = ""

    async def talk(self) -> None:
        ann, bob = await self.world.instance("a1", "ann"), await self.world.instance("b1", "bob")
        self.thread = (await ann("ask", body="one \ud800\x00", toAgent="bob"))["thread_id"]
        await bob("reply", threadId=self.thread, body="two")
        await ann("ask", body="three", threadId=self.thread)

    async def faults(self) -> list[tuple[int, str]]:
        verdict = await self.verdict()
        return [(one.sequence, one.problem) for one in verdict.faults]

    async def verdict(self) -> Verdict:
        return await self.signatures.verify("local", self.thread)

    async def change(self, number: int, **values: object) -> None:
        same = MESSAGES.sequence == number
        await self.database.write(
            lambda connection: connection.execute(update(network_messages).where(same).values(**values))
        )

    async def remove(self, number: int) -> None:
        same = MESSAGES.sequence == number
        await self.database.write(lambda connection: connection.execute(delete(network_messages).where(same)))


@pytest.fixture
async def signed(database: Database) -> Signed:
    keys = MessageKeys(
        SqlSigningKeyStore(database, make_sealer(), purpose="messages"), SetClock(), CountedIds()
    )
    await keys.load()
    made = Signed(database, keys)
    await made.talk()
    return made


async def test_messages_are_as_the_hub_took_them_and_another_process_sees_it_too(signed: Signed) -> None:
    assert await signed.verdict() == Verdict(1, 3, 0, [])
    again = MessageKeys(
        SqlSigningKeyStore(signed.database, make_sealer(), purpose="messages"), SetClock(), CountedIds()
    )
    await again.load()
    assert again.key_id == signed.keys.key_id
    whole = await NetworkSignatures(signed.store, again).verify("local", None)
    assert whole == Verdict(1, 3, 0, [])


@pytest.mark.parametrize(
    "values",
    [
        {"body": "2"},
        {"sender": "ann"},
        {"sender_instance": "a1x"},
        {"subject": "x"},
        {"kind": "notice"},
        {"task_id": "t"},
        {"recipients": []},
        {"id": "another"},
        {"signature": ""},
        {"signature": "####"},
    ],
    ids=str,
)
async def test_a_changed_message_is_found(signed: Signed, values: dict[str, object]) -> None:
    await signed.change(2, **values)
    assert await signed.faults() == [(2, CHANGED)]


async def test_a_forged_message_is_found(signed: Signed) -> None:
    rows = await signed.store.read(
        NetworkName("local"), lambda reader: reader.messages_of_thread(ThreadId(signed.thread))
    )
    assert signed.keys.verifies(
        rows[0].key_id, signed_bytes(NetworkName("local"), rows[0]), rows[0].signature
    )

    def copy(connection: Connection) -> None:
        row = dict(
            connection.execute(select(network_messages).where(MESSAGES.sequence == 3)).mappings().one()
        )
        connection.execute(
            insert(network_messages).values(row | {"id": "forged", "sequence": 4, "call_id": "f"})
        )

    await signed.database.write(copy)
    assert await signed.faults() == [(4, CHANGED)]


async def test_a_removed_message_is_found_in_the_middle_and_at_the_end(signed: Signed) -> None:
    await signed.remove(2)
    assert await signed.faults() == [(2, "the message is missing")]
    await signed.remove(3)
    assert await signed.faults() == [(2, "the message is missing"), (3, "the message is missing")]


async def test_messages_that_changed_places_are_found(signed: Signed) -> None:
    await signed.change(2, sequence=9)
    await signed.change(3, sequence=2)
    await signed.change(9, sequence=3)
    assert await signed.faults() == [(2, CHANGED), (3, CHANGED)]


async def test_a_message_of_another_hub_and_one_that_lost_its_signature_are_found(signed: Signed) -> None:
    await signed.change(3, key_id="theirs")
    assert "'theirs'" in (await signed.faults())[0][1]
    await signed.change(2, sequence=0, key_id="", signature="")
    assert (0, "it lost its signature") in await signed.faults()


async def test_a_copy_that_was_led_to_somebody_else_is_found(signed: Signed) -> None:
    await signed.database.write(
        lambda connection: connection.execute(update(network_deliveries).values(agent="eve"))
    )
    assert len(await signed.faults()) == 3


async def test_messages_from_before_signatures_are_told_apart(signed: Signed) -> None:
    unsigned = World(SqlNetworkStore(signed.database), signed.world.ids)
    ann = await unsigned.instance("a2", "ann")
    old = (await ann("ask", body="old", toAgent="bob"))["thread_id"]
    assert await signed.signatures.verify("local", old) == Verdict(1, 0, 1, [])
    assert (await signed.signatures.verify("local", None)).unsigned == 1
    length = select(network_threads.c.messages).where(network_threads.c.id == old)
    assert await signed.database.read(lambda connection: connection.scalar(length)) == 0
