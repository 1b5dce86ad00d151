"""A private PostgreSQL server, and databases cloned from a template."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Self

import psycopg

_USERS = ("postgres", "nobody")
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
}


class PostgresMissing(Exception):
    """The server's programs are not on this machine."""


class PostgresServer:
    """A server of its own: a unix socket in a short directory, no TCP, nothing kept.

    The server refuses to run as root, so root starts it as an unprivileged user.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # socket paths have 107 bytes
        self._numbers = count(1)
        self._user = next(name for name in _USERS if _exists(name)) if os.geteuid() == 0 else None

    def __enter__(self) -> Self:
        """Start it."""
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        data = str(self._folder / "data")
        self._run(
            "initdb",
            *("--pgdata", data, "--username", "portside", "--auth", "trust"),
            *("--encoding", "UTF8", "--no-locale", "--no-sync"),
        )
        settings = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in _SETTINGS.items())
        options = f"-k {self._folder} {settings}"
        self._run("pg_ctl", "start", "--wait", "-D", data, "-l", f"{self._folder}/log", "-o", options)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it and remove its files."""
        self._run("pg_ctl", "stop", "-D", str(self._folder / "data"), "--mode", "immediate")
        shutil.rmtree(self._folder)

    @contextmanager
    def away(self) -> Generator[None]:
        """Stop it the hard way, and start it again at the end."""
        data = str(self._folder / "data")
        self._run("pg_ctl", "stop", "--wait", "-D", data, "--mode", "immediate")
        try:
            yield
        finally:
            # It starts with the options that it was started with.
            self._run("pg_ctl", "restart", "--wait", "-D", data, "-l", f"{self._folder}/log")

    def restart(self) -> None:
        """End every connection the hard way and come back."""
        data = str(self._folder / "data")
        self._run(
            "pg_ctl", "restart", "--wait", "-D", data, "--mode", "immediate", "-l", f"{self._folder}/log"
        )

    def create(self, template: str = "template0") -> str:
        """A new database's name; a copy of `template`."""
        name = f"db{next(self._numbers)}"
        self._sql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        self._sql(f"DROP DATABASE {name} WITH (FORCE)")

    def url(self, name: str) -> str:
        """What `Database.open` takes."""
        return f"postgresql://portside@/{name}?host={self._folder}"

    def _sql(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _run(self, program: str, *arguments: str) -> None:
        # pg_ctl leaves a server behind that would hold a pipe open: output goes to a file.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(self._programs / program), *arguments],
                user=self._user,
                group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
                extra_groups=None if self._user is None else [],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
            output.seek(0)
            text = output.read().decode(errors="replace")
        assert done.returncode == 0, f"{program} failed:\n{text}"


def find_programs() -> Path:
    """The folder that holds `initdb` and `postgres`.

    Raises:
        PostgresMissing: there is none.
    """
    for folder in _folders():
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise PostgresMissing("PostgreSQL's server programs are not installed (Debian: apt install postgresql)")


def _folders() -> list[Path]:
    folders: list[Path] = []
    if config := shutil.which("pg_config"):
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(answer.stdout.strip()))
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)
    return folders + [Path(entry) for entry in os.get_exec_path()]


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
