"""Machine code on disk, trusted only with our own seal.

Loading a `.cwasm` file runs what it holds as native code. So each one has a seal beside it, made with a
key that only this installation has, over its name and content; without a matching seal it is a miss.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Generator
from pathlib import Path

from wasm_tools.engine import config_fingerprint, wasmtime_version

_KEY_BYTES = 32


def load_or_create_key(path: Path) -> bytes:
    """The key of the seals; made at the first use, whole and once, readable by its owner only.

    Raises:
        ValueError: the file is not a key of ours.
    """
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_bytes(secrets.token_bytes(_KEY_BYTES))
        with contextlib.suppress(FileExistsError):  # another process was first; its key is the one
            os.link(draft, path)
        draft.unlink()
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{path} is not a key of {_KEY_BYTES} bytes; remove it, a new one is made")
    return key


class CompiledCache:
    """`<sha256>-<wasmtime version>-<config>.cwasm` and its seal, in a directory of ours.

    Several processes may share the directory: a lock on it keeps each file and its seal together.
    """

    def __init__(self, directory: Path, key: bytes) -> None:
        self._directory = directory
        self._key = key
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def find(self, wasm: bytes) -> Path | None:
        """The machine code of this component, if it is here and unchanged since we wrote it."""
        path = self._path(wasm)
        try:
            with self._locked(fcntl.LOCK_SH):
                sealed = self._seal_path(path).read_text("ascii")
                fits = hmac.compare_digest(sealed, self._seal(path.name, path))
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        return path if fits else None

    def scratch(self) -> Path:
        """A new empty file to compile into; hand it to `adopt`, or remove it."""
        handle, name = tempfile.mkstemp(dir=self._directory, prefix="new-", suffix=".tmp")
        os.close(handle)
        return Path(name)

    def adopt(self, wasm: bytes, compiled: Path) -> Path:
        """Seal a file of `scratch` and give it its place."""
        path = self._path(wasm)
        seal = self.scratch()
        seal.write_text(self._seal(path.name, compiled), "ascii")
        with self._locked(fcntl.LOCK_EX):
            compiled.replace(path)
            seal.replace(self._seal_path(path))
        return path

    @contextlib.contextmanager
    def _locked(self, how: int) -> Generator[None]:
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(directory, how)
            yield
        finally:
            os.close(directory)

    def _path(self, wasm: bytes) -> Path:
        digest = hashlib.sha256(wasm).hexdigest()
        return self._directory / f"{digest}-{wasmtime_version()}-{config_fingerprint()}.cwasm"

    def _seal_path(self, path: Path) -> Path:
        return path.with_suffix(".seal")

    def _seal(self, name: str, path: Path) -> str:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        return hmac.new(self._key, name.encode() + b"\0" + content, "sha256").hexdigest()
