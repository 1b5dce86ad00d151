"""The state directory: made private, owned by one orchestrator at a time."""

from __future__ import annotations

import fcntl
import os
import secrets
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import HomeTaken

_FOLDERS = ("keys", "tools", "cache", "blobs")


def prepare_home(home: Path) -> str:
    """Make the directory, readable by its owner only.

    Returns:
        The id of the orchestrator that lives here; what it made in a container engine carries it.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    for name in _FOLDERS:
        (home / name).mkdir(exist_ok=True, mode=0o700)
    return _made_once(home / "instance-id", uuid.uuid4().hex)


def operator_token(file: Path) -> str:
    """The operators' token; made at the first start, readable by the owner only."""
    return _made_once(file, secrets.token_urlsafe(32))


@contextmanager
def own_home(home: Path) -> Generator[None]:
    """Be the one orchestrator that looks after this directory's jobs, for as long as the context lasts.

    The lock is the kernel's: a killed process leaves none behind.

    Raises:
        HomeTaken: another process is it.
    """
    prepare_home(home)
    handle = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise HomeTaken(f"another orchestrator (process {owner}) looks after {home}") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def socket_root(instance: str) -> Path:
    """Where an orchestrator's job sockets lie; short, since a socket's path has 107 bytes at most."""
    if os.getuid() == 0:
        root = Path("/run/portside")
    else:
        root = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "portside"
    return root / instance[:8]


def _made_once(file: Path, text: str) -> str:
    """The file's text; written whole by whoever is first."""
    if not file.exists():
        draft = file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}")
        draft.touch(mode=0o600)
        draft.write_text(text)
        try:
            os.link(draft, file)
        except FileExistsError:
            pass  # another process was first: its text counts
        finally:
            draft.unlink()
    return file.read_text().strip()
