"""PD-43: what every `MemberTokenStore` does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.member_tokens import SqlMemberTokenStore
from orchestrator.ports.errors import AlreadyExists
from orchestrator.ports.member_tokens import Holder, MemberToken, MemberTokenStore
from tests.support.jobs import START


@pytest.fixture
def tokens(database: Database) -> MemberTokenStore:
    return SqlMemberTokenStore(database)


def make_token(token_id: str, age_s: int = 0, holder: Holder = Holder.AGENT) -> MemberToken:
    at = START - timedelta(seconds=age_s)
    return MemberToken(token_id, holder, "scout", "local", at, at + timedelta(days=30))


async def test_tokens_come_back_newest_first(tokens: MemberTokenStore):
    made = [make_token("t2", 5), make_token("t3", holder=Holder.REPRESENTATIVE), make_token("t1", 9)]
    for token in made:
        await tokens.add(token)
    assert await tokens.list() == [made[1], made[0], made[2]]
    assert await tokens.get("t3") == made[1]
    assert await tokens.get("nobody's") is None


async def test_an_id_is_given_out_once(tokens: MemberTokenStore):
    await tokens.add(make_token("t1"))
    with pytest.raises(AlreadyExists):
        await tokens.add(make_token("t1", 5))
    assert await tokens.list() == [make_token("t1")]


async def test_a_revoked_token_keeps_the_time_of_its_first_revocation(tokens: MemberTokenStore):
    await tokens.add(make_token("t1"))
    void = replace(make_token("t1"), revoked_at=START)
    assert await tokens.revoke("t1", START) == void
    assert await tokens.revoke("t1", START + timedelta(days=1)) == void
    assert await tokens.get("t1") == void
    assert await tokens.revoke("nobody's", START) is None
