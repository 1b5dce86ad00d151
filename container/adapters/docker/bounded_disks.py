"""Disks of a fixed size for sandboxes: sparse files with ext4, given to the engine as volumes. Needs root.

An engine's own volumes grow until its disk is full. A file takes as much of the host's disk as is written
into it, and never more than its size; it also bounds how many files can be made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from container.adapters.docker.loop_device import attach, attached, attached_to_removed, can_attach, detach
from container.engine.errors import EngineError

_TOOLS = ("mke2fs", "debugfs")
_ADMIN_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
_SUFFIX = ".ext4"
_TEMPLATE = "template-"
_SANDBOX = "portside-"
_LEAST_FREE_BYTES = 256 * 1024**2
_ABANDONED_S = 600.0
_OWNER = 1000


@dataclass(frozen=True, slots=True)
class DiskSize:
    """What one disk holds."""

    bytes: int = 8 * 1024**3
    files: int = 1_000_000


class BoundedDisks:
    """Makes and removes disks in one folder, which one orchestrator owns. All methods block."""

    def __init__(self, folder: Path, size: DiskSize = DiskSize()) -> None:
        self.size = size
        self._folder = folder
        self._lock = threading.Lock()

    def obstacle(self) -> str:
        """Why none can be made here; empty when they can."""
        if os.geteuid() != 0:
            return "bounded disks need root"
        missing = [tool for tool in _TOOLS if shutil.which(tool, path=_ADMIN_PATH) is None]
        if missing:
            return f"bounded disks need {' and '.join(missing)} (package e2fsprogs)"
        return "" if can_attach() else "bounded disks need the kernel's loop devices"

    def make(self, name: str, size: DiskSize) -> Path:
        """A block device with an empty ext4 that belongs to user 1000; the same name again, the same one.

        Raises:
            EngineError: there is no room, or it can't be made; the message says what to do.
        """
        file = self._file(name)
        with self._lock:
            try:
                if not file.exists():
                    self._refuse_without_room()
                    _copy_sparse(self._template(size), file)
                return next(iter(attached(file)), None) or attach(file)
            except (OSError, subprocess.CalledProcessError) as error:
                file.unlink(missing_ok=True)
                reason = error.stderr if isinstance(error, subprocess.CalledProcessError) else error.strerror
                raise EngineError(f"no disk can be made in {self._folder}: {reason}") from error

    def release(self, name: str) -> None:
        """Remove it; removing twice is fine."""
        file = self._file(name)
        for device in attached(file):
            detach(device)
        file.unlink(missing_ok=True)

    def sweep(self, used: Collection[str]) -> None:
        """Remove what a killed process left: of no name in use, and made more than ten minutes ago.

        Also lets go of files that were removed with their folder; a device in use stays until it is not.
        """
        for device in attached_to_removed(_SANDBOX, _SUFFIX):
            detach(device)
        if not self._folder.is_dir():
            return
        with tempfile.NamedTemporaryFile(dir=self._folder) as fresh:
            abandoned = Path(fresh.name).stat().st_mtime - _ABANDONED_S
        for file in self._folder.glob(f"*{_SUFFIX}"):
            name = file.name.removesuffix(_SUFFIX)
            if name not in used and not name.startswith(_TEMPLATE) and file.stat().st_mtime < abandoned:
                self.release(name)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"

    def _refuse_without_room(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(self._folder).free
        if free < _LEAST_FREE_BYTES:
            left = f"{free / 1024**2:.0f} MiB left"
            raise EngineError(f"the disk that holds {self._folder} has {left}: make room for a new job")

    def _template(self, size: DiskSize) -> Path:
        """An empty file system of this size; copying its few written blocks is faster than making one."""
        template = self._file(f"{_TEMPLATE}{size.bytes}-{size.files}")
        if template.exists():
            return template
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="making-") as scratch:
            image = Path(scratch) / "image"
            with image.open("wb") as out:
                out.truncate(size.bytes)
            options = f"root_owner={_OWNER}:{_OWNER},lazy_itable_init=1,nodiscard"
            # no journal: nothing of a job is worth it when the machine has fallen
            _run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-N", str(size.files), "-O", "^has_journal",
                 "-E", options, str(image))  # fmt: skip
            _run("debugfs", "-w", "-R", "rmdir lost+found", str(image))  # else it would stand in the diff
            image.rename(template)
        return template


def _copy_sparse(source: Path, target: Path) -> None:
    """Copy what is written and leave the holes."""
    whole = source.stat().st_size
    with source.open("rb") as reading, target.open("xb") as writing:
        target.chmod(0o600)
        writing.truncate(whole)
        end = 0
        while end < whole:
            try:
                begin = os.lseek(reading.fileno(), end, os.SEEK_DATA)
            except OSError:
                return  # only a hole is left
            end = os.lseek(reading.fileno(), begin, os.SEEK_HOLE)
            os.lseek(reading.fileno(), begin, os.SEEK_SET)
            os.lseek(writing.fileno(), begin, os.SEEK_SET)
            left = end - begin
            while left and (sent := os.sendfile(writing.fileno(), reading.fileno(), None, left)):
                left -= sent


def _run(*command: str) -> None:
    environment = {"PATH": _ADMIN_PATH, "LC_ALL": "C"}
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
