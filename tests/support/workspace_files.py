"""A workspace's files as tests put and see them; the same code beside the tests and inside a container.

Nothing but the standard library: its text is also run by a bare interpreter.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path


class WorkspaceFiles:
    """The directories `workspace`, `outside` and `out` below one base.

    Args:
        base: made if need be.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.path = base / "workspace"
        self.outside = base / "outside"
        self.output_dir = base / "out"
        self.path.mkdir(parents=True)
        self.outside.mkdir()

    def put(self, name: str, data: bytes | str, mode: int | None = None) -> None:
        """Write a file, with its directories."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        if mode is not None:
            path.chmod(mode)

    def get(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def remove(self, name: str) -> None:
        (self.path / name).unlink()

    def put_raw(self, name: bytes, data: bytes) -> None:
        """Write a file whose name need not be UTF-8."""
        Path(os.fsdecode(os.fsencode(self.path) + b"/" + name)).write_bytes(data)

    def get_raw(self, name: bytes) -> bytes:
        return Path(os.fsdecode(os.fsencode(self.path) + b"/" + name)).read_bytes()

    def saved(self, path: str) -> bytes:
        """An output that the shell saved."""
        return Path(path).read_bytes()

    def mode(self, name: str) -> int:
        return (self.path / name).stat().st_mode & 0o7777

    def exists(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    def is_link(self, name: str) -> bool:
        return (self.path / name).is_symlink()

    def names(self, name: str = ".") -> list[str]:
        """The entries of a directory, sorted; none when it is not there."""
        path = self.path / name
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def link(self, name: str, target: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def make_directory(self, name: str) -> None:
        (self.path / name).mkdir(parents=True)

    def make_fifo(self, name: str) -> None:
        os.mkfifo(self.path / name)

    def make_socket(self, name: str) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path / name))

    def make_many(self, name: str, count: int) -> None:
        """A directory of empty files f000000, f000001, ..."""
        (self.path / name).mkdir()
        directory = os.open(self.path / name, os.O_RDONLY)
        for number in range(count):
            os.close(os.open(f"f{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
        os.close(directory)

    def umask(self) -> int:
        umask = os.umask(0o022)
        os.umask(umask)
        return umask

    def picture(self) -> dict[str, tuple[int, bytes]]:
        """Every entry of the workspace with its mode and content, to compare before and after."""
        seen: dict[str, tuple[int, bytes]] = {}
        for directory, names, files in os.walk(self.path):
            for name in [*names, *files]:
                path = Path(directory, name)
                state = path.lstat()
                is_link, is_file = path.is_symlink(), path.is_file()
                data = os.fsencode(path.readlink()) if is_link else path.read_bytes() if is_file else b""
                seen[str(path.relative_to(self.path))] = (state.st_mode, data)
        return seen

    def processes_with(self, mark: str) -> list[int]:
        """The living processes that work in this workspace and whose command line holds a text."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or mark.encode() not in (entry / "cmdline").read_bytes():
                    continue
                if Path(os.readlink(entry / "cwd")).is_relative_to(self.path):  # noqa: PTH115 - may be "(deleted)"
                    found.append(int(entry.name))
            except OSError:
                continue  # ended while we looked
        return found

    def zombies(self) -> list[int]:
        """The dead children of this process that nobody collected."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit():
                    state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                    if state == "Z" and int(parent) == os.getpid():
                        found.append(int(entry.name))
            except OSError:
                continue
        return found

    def alive(self, pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    def memory_bytes(self) -> int:
        """The memory that this process has had at most."""
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def forget(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.base)
