"""The keys that sign agents' messages: Ed25519, kept like those of job tokens, and for good."""

from __future__ import annotations

import base64
import binascii

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from orchestrator.ports.ids import Ids
from orchestrator.ports.signing_keys import SigningKey, SigningKeyStore
from tool_registry.clock import Clock


class MessageKeys:
    """`MessageSigner` over stored keys. No key is ever forgotten: old messages are verified with it."""

    def __init__(self, keys: SigningKeyStore, clock: Clock, ids: Ids) -> None:
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._signing: tuple[str, Ed25519PrivateKey] | None = None
        self._public: dict[str, Ed25519PublicKey] = {}

    async def load(self) -> None:
        """Read the keys; make the first one when there is none.

        Raises:
            SecretUnreadable: a key was changed, or sealed under another master key.
        """
        keys = await self._keys.list()
        if not keys:
            keys = [await self._make()]
        private = {key.kid: _private(key) for key in keys}
        self._public = {kid: key.public_key() for kid, key in private.items()}
        newest = keys[0].kid
        self._signing = (newest, private[newest])

    @property
    def key_id(self) -> str:
        """Which key signs now."""
        return self._present()[0]

    def sign(self, data: bytes) -> str:
        """The present key's signature, in base64."""
        return base64.b64encode(self._present()[1].sign(data)).decode()

    def verifies(self, key_id: str, data: bytes, signature: str) -> bool | None:
        """Whether the signature is this key's over the data; None when the key is not known."""
        key = self._public.get(key_id)
        if key is None:
            return None
        try:
            key.verify(base64.b64decode(signature, validate=True), data)
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True

    def _present(self) -> tuple[str, Ed25519PrivateKey]:
        if self._signing is None:
            message = "load() runs before the first message is signed"
            raise RuntimeError(message)
        return self._signing

    async def _make(self) -> SigningKey:
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        key = SigningKey(self._ids.new(), pem.decode(), self._clock.now())
        await self._keys.add(key)
        return key


def _private(key: SigningKey) -> Ed25519PrivateKey:
    loaded = serialization.load_pem_private_key(key.private_pem.encode(), password=None)
    if not isinstance(loaded, Ed25519PrivateKey):
        message = f"message key {key.kid} is not an Ed25519 key"
        raise TypeError(message)
    return loaded
