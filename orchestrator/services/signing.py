"""The keys that sign every token, and what a token must be before anybody looks at what it says.

EdDSA by pyjwt. The algorithm is the key's, never the token's own claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from orchestrator.errors import Unauthorised
from orchestrator.ports.ids import Ids
from orchestrator.ports.signing_keys import SigningKey, SigningKeyStore
from tool_registry.clock import Clock

ISSUER = "portside"
LEEWAY_S = 30
_ALGORITHM = "EdDSA"
_MAX_TOKEN_CHARS = 8_192


class TokenSigner:
    """Signs claims and reads signed ones back.

    Args:
        keys: where the keys are kept, sealed.
        clock: tells what is not valid yet.
        ids: names new keys and tokens.
    """

    def __init__(self, keys: SigningKeyStore, clock: Clock, ids: Ids) -> None:
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._signing: tuple[str, Ed25519PrivateKey] | None = None
        self._verifying: dict[str, Ed25519PublicKey] = {}

    async def load(self) -> None:
        """Read the signing keys; make the first one when there is none."""
        keys = await self._keys.list()
        if not any(key.retired_at is None for key in keys):
            keys = [await self._make_key(), *keys]
        private = {key.kid: _private(key) for key in keys}
        self._verifying = {kid: key.public_key() for kid, key in private.items()}
        newest = next(key.kid for key in keys if key.retired_at is None)
        self._signing = (newest, private[newest])

    async def rotate(self) -> str:
        """Sign with a new key from now on; older keys verify until they are dropped.

        Returns:
            The new key's id.
        """
        now = self._clock.now()
        old = [key.kid for key in await self._keys.list() if key.retired_at is None]
        key = await self._make_key()
        for kid in old:
            await self._keys.retire(kid, now)
        await self.load()
        return key.kid

    async def drop_retired(self, longest_life_s: float) -> None:
        """Forget keys that were retired before any token that is still live was signed."""
        horizon = self._clock.now() - timedelta(seconds=longest_life_s + LEEWAY_S)
        for key in await self._keys.list():
            if key.retired_at is not None and key.retired_at < horizon:
                await self._keys.delete(key.kid)
        await self.load()

    def sign(
        self, audience: str, subject: str, expires_at: datetime, token_id: str | None = None, **claims: Any
    ) -> str:
        """A token from now on to `expires_at`, with these claims beside the usual ones."""
        if self._signing is None:
            message = "load() runs before the first token is issued"
            raise RuntimeError(message)
        kid, private = self._signing
        now = self._clock.now()
        whole = {
            "iss": ISSUER,
            "aud": audience,
            "sub": subject,
            "jti": token_id or self._ids.new(),
            "iat": now,
            "nbf": now,
            "exp": expires_at,
            **claims,
        }
        return jwt.encode(whole, private, algorithm=_ALGORITHM, headers={"kid": kid})

    def read(self, token: str, audience: str, more: Sequence[str] = ()) -> Mapping[str, Any]:
        """The claims of a token of ours for this audience; it may have expired.

        Args:
            token: as its holder sent it.
            audience: whom it has to be for.
            more: claims that it must have beside the usual ones.

        Raises:
            Unauthorised: it is anything else. There is one answer for every way to be wrong.
        """
        if len(token) > _MAX_TOKEN_CHARS:
            raise invalid_token()
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._verifying.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise invalid_token()
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=audience,
                issuer=ISSUER,
                options={
                    "require": ["iss", "aud", "sub", "jti", "iat", "nbf", "exp", *more],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            raise invalid_token() from None
        self._check_types(claims)
        return claims

    def _check_types(self, claims: Mapping[str, Any]) -> None:
        """Hold types and times to what they must be; the library checks neither strictly."""
        times = [claims[name] for name in ("iat", "nbf", "exp")]
        if any(isinstance(one, bool) or not isinstance(one, int) for one in times):
            raise invalid_token()
        horizon = self._clock.now().timestamp() + LEEWAY_S
        if times[0] > horizon or times[1] > horizon or not 0 < times[2] < 2**40:
            raise invalid_token()
        if not all(isinstance(claims[name], str) for name in ("sub", "jti")):
            raise invalid_token()

    async def _make_key(self) -> SigningKey:
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        key = SigningKey(kid=self._ids.new(), private_pem=pem.decode(), created_at=self._clock.now())
        await self._keys.add(key)
        return key


def invalid_token() -> Unauthorised:
    """The one answer for every way in which a token can be wrong."""
    return Unauthorised("the token is not valid", "token_invalid")


def _private(key: SigningKey) -> Ed25519PrivateKey:
    loaded = serialization.load_pem_private_key(key.private_pem.encode(), password=None)
    if not isinstance(loaded, Ed25519PrivateKey):
        message = f"signing key {key.kid} is not an Ed25519 key"
        raise TypeError(message)
    return loaded
