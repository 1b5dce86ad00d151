"""PD-44: what every store of representatives, confirmations and the channel does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from orchestrator.adapters.db.channel import SqlChannelStore
from orchestrator.adapters.db.confirmations import SqlConfirmationStore
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.representatives import SqlRepresentativeStore
from orchestrator.domain.network.confirmations import LIFETIME, Confirmation, asked
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.rights import Representative, Right
from orchestrator.ports.errors import AlreadyExists
from orchestrator.ports.representatives import (
    ChannelMessage,
    ChannelStore,
    ConfirmationStore,
    RepresentativeStore,
)
from tests.support.jobs import START

HERE, THERE = NetworkName("local"), NetworkName("prod")
RITA, OTTO = AgentName("rita"), AgentName("otto")


@pytest.fixture
def representatives(database: Database) -> RepresentativeStore:
    return SqlRepresentativeStore(database)


@pytest.fixture
def confirmations(database: Database) -> ConfirmationStore:
    return SqlConfirmationStore(database)


@pytest.fixture
def channel(database: Database) -> ChannelStore:
    return SqlChannelStore(database)


async def test_a_representative_is_kept_with_its_grants(representatives: RepresentativeStore) -> None:
    first = Representative(RITA, "anna", START)
    await representatives.put(first)
    assert await representatives.get(RITA) == first
    granted = replace(
        first,
        active_network=THERE,
        grants={HERE: frozenset({Right.OBSERVE}), THERE: frozenset(Right)},
    )
    await representatives.put(granted)
    await representatives.put(Representative(OTTO, "anna", START))
    assert await representatives.get(RITA) == granted
    assert [one.name for one in await representatives.list()] == [OTTO, RITA]
    assert await representatives.remove(RITA)
    assert not await representatives.remove(RITA)
    assert await representatives.get(RITA) is None


async def test_access_is_a_person_s_and_is_taken_away_by_none(representatives: RepresentativeStore) -> None:
    await representatives.set_access("anna", HERE, frozenset({Right.OBSERVE}))
    await representatives.set_access("anna", THERE, frozenset(Right))
    await representatives.set_access("bert", HERE, frozenset(Right))
    await representatives.set_access("anna", HERE, frozenset({Right.DELEGATE}))
    await representatives.set_access("anna", THERE, frozenset())
    assert await representatives.access("anna") == {HERE: frozenset({Right.DELEGATE})}
    assert await representatives.access("nobody") == {}


def make_confirmation(one: str, age_s: int = 0) -> Confirmation:
    wanted = Confirmation("", RITA, HERE, '["control_stop_agent","i1"]', "stop i1", START, START)
    return asked(one, wanted, START - timedelta(seconds=age_s))


async def test_a_confirmation_is_used_once_however_many_ask_at_once(
    confirmations: ConfirmationStore,
) -> None:
    await confirmations.add(make_confirmation("c1"))
    with pytest.raises(AlreadyExists):
        await confirmations.add(make_confirmation("c1"))
    assert await confirmations.change("c1", lambda one: one.used(START)) is None
    assert await confirmations.change("c1", lambda one: one.confirmed(START)) is not None
    used: list[Confirmation | None] = []

    async def use() -> None:
        used.append(await confirmations.change("c1", lambda one: one.used(START)))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(use)
    assert [one.used_at for one in used if one is not None] == [START]
    assert await confirmations.change("none", lambda one: one) is None


async def test_open_confirmations_are_the_unused_ones_that_still_live(
    confirmations: ConfirmationStore,
) -> None:
    for one, age_s in (("c1", 5), ("c2", 599), ("c3", 600), ("c4", 1)):
        await confirmations.add(make_confirmation(one, age_s))
    await confirmations.change("c4", lambda one: replace(one, confirmed_at=START, used_at=START))
    assert [one.id for one in await confirmations.open(START)] == ["c2", "c1"]
    assert timedelta(minutes=10) == LIFETIME
    assert await confirmations.change("c3", lambda one: one.confirmed(START)) is None
    await confirmations.change("c2", lambda one: one.confirmed(START))
    late = START + timedelta(seconds=1)
    assert await confirmations.change("c2", lambda one: one.used(late)) is None


async def test_the_channel_is_told_from_old_to_new(channel: ChannelStore) -> None:
    for number in range(5):
        who, conversation = (RITA, "a") if number % 2 == 0 else (OTTO, "b")
        message = ChannelMessage(f"m{number}", who, conversation, number == 2, f"text {number}", START)
        await channel.add(message)
    assert [one.id for one in await channel.history()] == ["m0", "m1", "m2", "m3", "m4"]
    rita = await channel.history(representative=RITA)
    assert [(one.id, one.from_operator) for one in rita] == [("m0", False), ("m2", True), ("m4", False)]
    assert [one.body for one in await channel.history(conversation_id="b", limit=1)] == ["text 3"]
