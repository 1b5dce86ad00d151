"""The state directory: made private, owned by one orchestrator at a time."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import HomeTaken, HomeUnusable

_FOLDERS = ("keys", "tools", "cache", "blobs")
_INSTANCE = re.compile(r"[0-9a-f]{32}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")


def prepare_home(home: Path) -> str:
    """Make the directory, readable by its owner only.

    Returns:
        The id of the orchestrator that lives here; what it made in a container engine carries it.

    Raises:
        HomeUnusable: the id's file is damaged.
        OSError: the directory can't be made or written.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    for name in _FOLDERS:
        (home / name).mkdir(exist_ok=True, mode=0o700)
    return _made_once(home / "instance-id", uuid.uuid4().hex, _INSTANCE)


def operator_token(file: Path) -> str:
    """The operators' token; made at the first start, readable by the owner only.

    Raises:
        HomeUnusable: the file is damaged.
    """
    return _made_once(file, secrets.token_urlsafe(32), _TOKEN)


@contextmanager
def own_home(home: Path) -> Generator[None]:
    """Be the one orchestrator that looks after this directory's jobs, for as long as the context lasts.

    It is also the only one of its id on this machine: a copy of the directory has the same id, and would
    take the sockets and sandboxes of the first for its own. The locks are the kernel's: a killed process
    leaves none.

    Raises:
        HomeTaken: another process is it.
        HomeUnusable: another process has its id, or the id is damaged.
    """
    instance = prepare_home(home)
    with _held(home / "lock") as owner:
        if owner is not None:
            raise HomeTaken(f"another orchestrator (process {owner}) looks after {home}")
        with _held(_instance_lock(instance)) as namesake:
            if namesake is not None:
                raise HomeUnusable(
                    f"another orchestrator (process {namesake}) has the id of {home}: one directory is a copy"
                    f" of the other. End that one, or remove {home / 'instance-id'} where this is the copy;"
                    " it then knows nothing of sandboxes that run"
                )
            yield


def _instance_lock(instance: str) -> Path | None:
    """The lock of an id; None where no socket can be made either, and so none can be taken from another."""
    root = socket_root(instance)
    try:
        root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return root.with_name(f"{root.name}.lock")


@contextmanager
def _held(lock: Path | None) -> Generator[str | None]:
    """Hold a lock for as long as the context lasts; answers the process that has it already."""
    if lock is None:
        yield None
        return
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            return
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield None
    finally:
        os.close(handle)


def socket_root(instance: str) -> Path:
    """Where an orchestrator's job sockets lie; short, since a socket's path has 107 bytes at most."""
    if os.getuid() == 0:
        root = Path("/run/portside")
    else:
        root = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "portside"
    return root / instance[:8]


def _made_once(file: Path, text: str, form: re.Pattern[str]) -> str:
    """The file's text; written whole by whoever is first.

    Raises:
        HomeUnusable: what stands in it is not of this form. An empty id would be everybody's.
    """
    if not file.exists():
        draft = file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}")
        draft.touch(mode=0o600)
        with draft.open("w", encoding="ascii") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())  # a file that is there but empty would outlive a loss of power
        try:
            os.link(draft, file)
        except FileExistsError:
            pass  # another process was first: its text counts
        finally:
            draft.unlink()
    found = file.read_text(encoding="ascii", errors="replace").strip()
    if not form.fullmatch(found):
        raise HomeUnusable(
            f"{file} is damaged; restore it, or remove it: a new one is made at the next start"
        )
    return found
