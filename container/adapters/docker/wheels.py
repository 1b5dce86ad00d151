"""The worker's libraries, hash-checked, for the Python that the base image has; kept in a cache directory."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from container.adapters.docker.build_context import Sources
from container.engine.errors import EngineError

_DEADLINE_S = 600.0
# A quarter of the tree, and nothing that the worker runs.
_UNUSED = ("bin", "*.dist-info/RECORD", "*.dist-info/REQUESTED", "*.dist-info/INSTALLER", "**/tests")


@dataclass(frozen=True, slots=True)
class Target:
    """The Python inside the base image, such as 3.12 on x86_64 with glibc 2.36."""

    python: str
    machine: str
    libc: str
    libc_version: str

    @property
    def name(self) -> str:
        """Names the cache entry."""
        return f"cp{self.python.replace('.', '')}-{self.libc}-{self.machine}"


class Libraries:
    """The locked libraries, unpacked. All methods block."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir

    def fetch(self, sources: Sources, target: Target) -> Path:
        """A directory with the libraries for `target`; the second call finds it in the cache.

        Raises:
            EngineError: they can't be fetched, or a hash differs; the installer's own words say which.
        """
        ready = self._cache_dir / f"worker-{sources.lock_digest()}-{target.name}"
        if ready.is_dir():
            return ready
        self._cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache_dir, prefix="fetching-") as scratch:
            tree = Path(scratch) / "tree"
            _install(sources.lock, target, tree)
            _slim(tree)
            try:
                tree.rename(ready)
            except OSError:
                if not ready.is_dir():  # another build was faster: the same content, so take it
                    raise
        return ready


def _install(lock: Path, target: Target, tree: Path) -> None:
    command = [*_installer(target), "--target", str(tree), "--require-hashes", "--no-deps", "-r", str(lock)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S)
    except subprocess.TimeoutExpired as error:
        raise EngineError(
            f"the worker's libraries did not arrive within {_DEADLINE_S:g} s; try again"
        ) from error
    if done.returncode != 0:
        raise EngineError(f"the worker's libraries can't be fetched: {done.stderr.strip()[-1000:]}")


def _installer(target: Target) -> list[str]:
    """With uv where it is there (ten times as fast), else pip; both unpack wheels of another Python."""
    binary_only = ["--only-binary", ":all:", "--python-version", target.python]
    uv = shutil.which("uv")
    if uv is not None:
        platform = f"{target.machine}-{'unknown-linux-musl' if target.libc == 'musl' else 'manylinux_2_28'}"
        return [uv, "pip", "install", "--quiet", *binary_only, "--python-platform", platform]
    if importlib.util.find_spec("pip") is not None:
        tags = [f"musllinux_1_{n}" for n in (1, 2)] if target.libc == "musl" else _manylinux(target)
        platforms = [word for tag in tags for word in ("--platform", f"{tag}_{target.machine}")]
        return [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--implementation", "cp"),
            *binary_only,
            *platforms,
        ]
    raise EngineError("the worker's libraries can't be fetched without uv or pip. Type: pip install uv")


def _manylinux(target: Target) -> list[str]:
    newest = int(target.libc_version.partition(".")[2] or 17)
    return [f"manylinux_2_{minor}" for minor in range(min(newest, 40), 4, -1)] + ["manylinux2014"]


def _slim(tree: Path) -> None:
    for pattern in _UNUSED:
        for path in list(tree.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
