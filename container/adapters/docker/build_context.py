"""What goes into the worker image: sources found, digested, and packed as the build's tar."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_LOCK = "requirements-worker.lock"
_SKIPPED_DIRECTORIES = frozenset({"__pycache__", ".git"})
_SITE = "site-packages"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the image's parts lie.

    Attributes:
        root: the directory that holds the packages `worker`, `tool_registry` and `container`: the repository,
            or the site-packages that Portside is installed in.
        lock: the hash-locked libraries of the worker.
    """

    root: Path
    lock: Path

    @classmethod
    def here(cls) -> Sources:
        """Of this very installation."""
        container = Path(__file__).resolve().parents[2]
        packed = container / _LOCK  # in an installed Portside the lock travels inside the package
        return cls(root=container.parent, lock=packed if packed.exists() else container.parent / _LOCK)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Name in the build context and file, sorted: the Dockerfile, the worker, the registry's core."""
        yield "Dockerfile", self.root / "container" / "Dockerfile"
        for package, left_out in (("tool_registry", {"mcp"}), ("worker", set[str]())):
            for path in _files(self.root / package):
                inside = path.relative_to(self.root / package)
                if inside.parts[0] not in left_out:
                    yield f"{_SITE}/{package}/{inside}", path

    def lock_digest(self) -> str:
        """Names the set of libraries."""
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()[:16]

    def digest(self, base_id: str) -> str:
        """Names the image: 16 hex digits over every source file, the lock and the base image."""
        seen = hashlib.sha256(f"{base_id}\n{self.lock_digest()}\n".encode())
        for name, path in self.files():
            seen.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        return seen.hexdigest()[:16]


def write_context(out: IO[bytes], sources: Sources, libraries: Path) -> None:
    """Write the build's tar: the sources, and the unpacked libraries for the base's Python."""
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, path in sources.files():
            _add(tar, name, path)
        for path in _files(libraries):
            _add(tar, f"{_SITE}/{path.relative_to(libraries)}", path)


def _add(tar: tarfile.TarFile, name: str, path: Path) -> None:
    """Content only: no owner, no time, so that equal trees make equal layers."""
    content = path.read_bytes()
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = 0o755 if path.suffix == ".so" else 0o644
    tar.addfile(info, io.BytesIO(content))


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.is_dir() and path.name not in _SKIPPED_DIRECTORIES:
            yield from _files(path)
        elif path.is_file() and path.suffix != ".pyc":
            yield path
