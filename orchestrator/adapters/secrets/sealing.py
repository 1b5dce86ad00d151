"""`Sealer` with AES-256-GCM."""

from __future__ import annotations

import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from orchestrator.adapters.secrets.master_key import MasterKey
from orchestrator.ports.secrets import SecretUnreadable

_FORMAT = b"\x01"
_KEY_ID_BYTES = 8
_NONCE_BYTES = 12
_HEADER_BYTES = len(_FORMAT) + _KEY_ID_BYTES + _NONCE_BYTES


class AesGcmSealer:
    """Seals under keys derived from the master key.

    Layout: format (1 byte), key id (8), nonce (12), ciphertext with its tag. Table, row, version, format and
    key id are authenticated: a sealed value opens in its own row only.
    """

    def __init__(self, master_key: MasterKey) -> None:
        self._cipher = AESGCM(_derive(master_key, b"portside seal", 32))
        self._key_id = _derive(master_key, b"portside key id", _KEY_ID_BYTES)

    def seal(self, value: bytes, *, table: str, row: str, version: int) -> bytes:
        """The sealed value; sealing the same one twice gives different bytes."""
        nonce = os.urandom(_NONCE_BYTES)
        bound = self._bound_to(table, row, version)
        return _FORMAT + self._key_id + nonce + self._cipher.encrypt(nonce, value, bound)

    def open(self, sealed: bytes, *, table: str, row: str, version: int) -> bytes:
        """The value.

        Raises:
            SecretUnreadable: it was changed, moved, or sealed under another master key.
        """
        key_id = sealed[len(_FORMAT) : len(_FORMAT) + _KEY_ID_BYTES]
        if not sealed.startswith(_FORMAT) or len(sealed) < _HEADER_BYTES:
            raise SecretUnreadable(f"{row!r} in {table} is not a sealed value")
        if key_id != self._key_id:
            raise SecretUnreadable(
                f"{row!r} in {table} was sealed under another master key: "
                "start with the key that was in use, or set the value again"
            )
        nonce, ciphertext = sealed[_HEADER_BYTES - _NONCE_BYTES : _HEADER_BYTES], sealed[_HEADER_BYTES:]
        try:
            return self._cipher.decrypt(nonce, ciphertext, self._bound_to(table, row, version))
        except InvalidTag as error:
            raise SecretUnreadable(f"{row!r} in {table} was changed or moved: set the value again") from error

    def _bound_to(self, table: str, row: str, version: int) -> bytes:
        return json.dumps([_FORMAT.hex(), self._key_id.hex(), table, row, version]).encode()


def _derive(master_key: MasterKey, purpose: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=purpose).derive(master_key.value)
