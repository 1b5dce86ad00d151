"""Where the master key comes from."""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

_BYTES = 32
_ADVICE = "make one with: openssl rand -base64 32"


class MasterKeyUnusable(Exception):
    """There is a master key, but it can't be used; the message says what to do."""


class KeyOrigin(StrEnum):
    """Where a master key was found."""

    ENVIRONMENT = "environment"
    FILE = "file"
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class MasterKey:
    """The key that everything secret is sealed under: 32 bytes.

    Attributes:
        path: of its file; None when it came from the environment.
    """

    value: bytes = field(repr=False)
    origin: KeyOrigin
    path: Path | None = None

    @classmethod
    def load(cls, home: Path, value: str | None = None) -> Self:
        """The master key: the one given, else the one in `HOME/keys/master.key`, else a new one there.

        Blocking. Processes that create it at the same time end up with the same key.

        Args:
            home: the state directory.
            value: of `PORTSIDE_MASTER_KEY`: 32 bytes in base64 or hexadecimal; empty is none.

        Raises:
            MasterKeyUnusable: the one found is malformed, or its file is open to others.
        """
        if value:
            return cls(_parse(value, "PORTSIDE_MASTER_KEY"), KeyOrigin.ENVIRONMENT)
        path = home / "keys" / "master.key"
        try:
            created = not path.exists() and _create(path)
            return cls(_read(path), KeyOrigin.CREATED if created else KeyOrigin.FILE, path)
        except OSError as error:
            raise MasterKeyUnusable(f"the master key {path} can't be read: {error.strerror}") from error


def _read(path: Path) -> bytes:
    with path.open(encoding="ascii", errors="replace") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise MasterKeyUnusable(f"{path} is open to other users: type chmod 600 {path}")
        return _parse(file.read(1024), str(path))


def _create(path: Path) -> bool:
    """Write a new key; False when another process was first. The file appears whole or not at all."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        with draft.open("wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return False
        _sync_folder(path.parent)
        return True
    finally:
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _parse(text: str, where: str) -> bytes:
    text = text.strip()
    try:
        key = bytes.fromhex(text) if len(text) == 2 * _BYTES else _from_base64(text)
    except ValueError:
        # The cause is left out, as its message may hold a part of the key.
        raise MasterKeyUnusable(f"{where} is neither base64 nor hexadecimal: {_ADVICE}") from None
    if len(key) != _BYTES:
        raise MasterKeyUnusable(f"{where} holds {len(key)} bytes, not {_BYTES}: {_ADVICE}")
    return key


def _from_base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
