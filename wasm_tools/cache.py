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
import re
import secrets
import tempfile
import weakref
from collections.abc import Generator, Iterator
from pathlib import Path

from wasm_tools.engine import config_fingerprint, wasmtime_version

_KEY_BYTES = 32
_KEPT = re.compile(r"[0-9a-f]{64}-(?P<engine>.+-[0-9a-f]{16})\.(?:cwasm|seal)")


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

    Several processes may share the directory: a lock on it keeps each file and its seal together. Who adds
    a file removes what is certainly dead: a scratch file and the files of another wasmtime or configuration
    whose owner holds no lock on them any more (the kernel gives up a killed process's locks), and half of a
    pair. It is a miss for whoever would still want it.
    """

    def __init__(self, directory: Path, key: bytes) -> None:
        self._directory = directory
        self._key = key
        self._engine = f"{wasmtime_version()}-{config_fingerprint()}"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked(fcntl.LOCK_SH):
            held = os.open(self._engine_lock(self._engine), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(held, fcntl.LOCK_SH)
        self._release = weakref.finalize(self, os.close, held)

    def close(self) -> None:
        """Leave the files of this wasmtime to whoever comes; what is loaded from them stays loaded."""
        self._release()

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

    @contextlib.contextmanager
    def scratch(self) -> Generator[Path]:
        """A new empty file to compile into and hand to `adopt`; gone afterwards."""
        handle, path = self._new_scratch()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
            os.close(handle)

    def adopt(self, wasm: bytes, compiled: Path) -> Path:
        """Seal a file of `scratch` and give it its place."""
        path = self._path(wasm)
        with self.scratch() as seal:
            seal.write_text(self._seal(path.name, compiled), "ascii")
            with self._locked(fcntl.LOCK_EX):
                compiled.replace(path)
                seal.replace(self._seal_path(path))
                self._sweep()
        return path

    def _new_scratch(self) -> tuple[int, Path]:
        while True:
            handle, name = tempfile.mkstemp(dir=self._directory, prefix="new-", suffix=".tmp")
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:
                return handle, Path(name)
            os.close(handle)  # it was swept before it was locked

    def _sweep(self) -> None:
        """Remove what is certainly dead; under the directory's lock."""
        for path in self._directory.glob("new-*.tmp"):
            with _abandoned(path) as dead:
                if dead:
                    path.unlink(missing_ok=True)
        kept = {path: found["engine"] for path in self._kept() if (found := _KEPT.fullmatch(path.name))}
        locks = {path.stem for path in self._directory.glob("*.lock")}
        for engine in (locks | set(kept.values())) - {self._engine}:
            with _abandoned(self._engine_lock(engine)) as dead:
                if dead:
                    for path in [path for path, of in kept.items() if of == engine]:
                        path.unlink()
                    self._engine_lock(engine).unlink(missing_ok=True)
        for path, engine in kept.items():
            other = path.with_suffix(".cwasm" if path.suffix == ".seal" else ".seal")
            if engine == self._engine and other not in kept:
                path.unlink()

    def _kept(self) -> Iterator[Path]:
        yield from self._directory.glob("*.cwasm")
        yield from self._directory.glob("*.seal")

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
        return self._directory / f"{digest}-{self._engine}.cwasm"

    def _engine_lock(self, engine: str) -> Path:
        return self._directory / f"{engine}.lock"

    def _seal_path(self, path: Path) -> Path:
        return path.with_suffix(".seal")

    def _seal(self, name: str, path: Path) -> str:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        return hmac.new(self._key, name.encode() + b"\0" + content, "sha256").hexdigest()


@contextlib.contextmanager
def _abandoned(path: Path) -> Generator[bool]:
    """Whether nobody holds a lock on a file, or it is not there; nobody can take one meanwhile."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            dead = False
        else:
            dead = True
        yield dead
    finally:
        os.close(handle)
