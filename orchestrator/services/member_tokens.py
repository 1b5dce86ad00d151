"""Tokens for agents and representatives that are no job: given out, checked, made void."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.errors import BadRequest, NotFound, Unauthorised
from orchestrator.ports.ids import Ids
from orchestrator.ports.member_tokens import Holder, MemberToken, MemberTokenStore
from orchestrator.services.signing import LEEWAY_S, TokenSigner, invalid_token
from tool_registry.clock import Clock

DEFAULT_DAYS = 30.0
MAX_DAYS = 366.0
_AUDIENCES = {
    Holder.AGENT: "portside-agent",
    Holder.REPRESENTATIVE: "portside-representative",
}
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class GivenToken:
    """A fresh token; this is the only time that its text is seen."""

    token: str
    about: MemberToken


class MemberTokens:
    """Gives out and checks tokens.

    Each kind of holder has its own audience, so that a token opens the doors of its kind only.

    Args:
        signer: signs and reads them; its keys are loaded.
        store: remembers what was given out and what is void.
        clock: dates them.
        ids: names them.
    """

    def __init__(self, signer: TokenSigner, store: MemberTokenStore, clock: Clock, ids: Ids) -> None:
        self._signer = signer
        self._store = store
        self._clock = clock
        self._ids = ids
        self._on_given: list[Callable[[MemberToken], Awaitable[None]]] = []
        self._on_revoked: list[Callable[[MemberToken], Awaitable[None]]] = []

    def on_given(self, listener: Callable[[MemberToken], Awaitable[None]]) -> None:
        """Await `listener` before a token is given out; what it raises keeps the token back."""
        self._on_given.append(listener)

    def on_revoked(self, listener: Callable[[MemberToken], Awaitable[None]]) -> None:
        """Await `listener` with every token that becomes void here from now on."""
        self._on_revoked.append(listener)

    async def give(
        self, holder: Holder, name: str, network: str = "", *, days: float = DEFAULT_DAYS
    ) -> GivenToken:
        """A token for one who comes from outside; it is good for one network, or a representative's grants.

        Raises:
            BadRequest: a name can't be one, or the lifetime is out of bounds.
        """
        if not 0 < days <= MAX_DAYS:
            raise BadRequest(f"a token lives more than 0 and at most {MAX_DAYS:g} days")
        now = self._clock.now()
        about = MemberToken(
            id=self._ids.new(),
            holder=holder,
            name=_name("name", name),
            network=_name("network", network) if holder is Holder.AGENT else "",
            created_at=now,
            expires_at=(now + timedelta(seconds=days * _DAY_S)).replace(microsecond=0),
        )
        for listener in self._on_given:
            await listener(about)
        await self._store.add(about)
        token = self._signer.sign(
            _AUDIENCES[holder], about.name, about.expires_at, about.id, network=about.network, scope=holder
        )
        return GivenToken(token, about)

    async def check(self, token: str, holder: Holder) -> MemberToken:
        """Whose token this is.

        Raises:
            Unauthorised: it is no valid token of this kind of holder, has expired, or was made void.
        """
        claims = self._signer.read(token, _AUDIENCES[holder], ("network",))
        about = await self._store.get(claims["jti"])
        if about is None or (about.holder, about.name, about.network) != (
            holder,
            claims["sub"],
            claims["network"],
        ):
            raise invalid_token()
        if about.revoked_at is not None:
            raise Unauthorised("this token was made void; ask the operator for another", "token_revoked")
        if self._clock.now().timestamp() - claims["exp"] > LEEWAY_S:
            raise Unauthorised("the token has expired; ask the operator for another", "token_expired")
        return about

    async def list(self) -> list[MemberToken]:
        """Every token that was given out, newest first."""
        return await self._store.list()

    async def revoke(self, token_id: str) -> MemberToken:
        """Make a token void at once; doing it again changes nothing.

        Raises:
            NotFound: there is none of this id.
        """
        revoked = await self._store.revoke(token_id, self._clock.now())
        if revoked is None:
            raise NotFound(f"there is no token {token_id[:80]!r}; see portside agents tokens")
        for listener in self._on_revoked:
            await listener(revoked)
        return revoked

    async def revoke_all(self, holder: Holder, name: str) -> None:
        """Make every token void that one holder has."""
        for one in await self._store.list():
            if (one.holder, one.name, one.revoked_at) == (holder, name, None):
                await self.revoke(one.id)


def _name(what: str, text: str) -> str:
    name = normal_name(text)
    if isinstance(name, Refusal):
        raise BadRequest(f"the {what}: {name.message}")
    return name
