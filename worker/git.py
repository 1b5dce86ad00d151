"""git over a directory that is not trusted: nothing the directory or its user configured has a say."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from worker.errors import ChangesFailed

_ERROR_CHARS = 500
# Above every .gitattributes of the workspace: bytes are recorded as they are and shown as they are.
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding !eol !diff !merge\n"
_CONFIG = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.precomposeUnicode": "false",
    "core.protectNTFS": "false",
    "gc.auto": "0",
    "diff.algorithm": "histogram",
    "diff.renames": "true",
    "diff.renameLimit": "2000",
    "merge.renames": "true",
    "merge.renameLimit": "2000",
    "advice.addEmbeddedRepo": "false",
}


class Git:
    """One private git directory, and the tree of files that it looks at.

    Args:
        git_dir: made by `init`; its parent is git's home.
        work_tree: where git runs; its own `.git` is neither read nor written.
    """

    def __init__(self, git_dir: Path, work_tree: Path) -> None:
        self.git_dir = git_dir
        self.work_tree = work_tree
        self._settings = [part for key, value in _CONFIG.items() for part in ("-c", f"{key}={value}")]

    def init(self, *, excluded: str = "") -> None:
        """Make the git directory.

        Raises:
            ChangesFailed: git refused.
        """
        self.git_dir.parent.mkdir(parents=True, exist_ok=True)
        self._checked(self._start("init", "--quiet", "--bare", "--template=", str(self.git_dir)), "init")
        info = self.git_dir / "info"
        info.mkdir(exist_ok=True)
        (info / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
        (info / "exclude").write_text(excluded, encoding="ascii")

    def __call__(self, *arguments: str, stdin: bytes = b"", output: int = subprocess.PIPE) -> bytes:
        """What a command prints.

        Raises:
            ChangesFailed: it failed, or git can't be started.
        """
        return self._checked(self.run(*arguments, stdin=stdin, output=output), arguments[0])

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        output: int = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, whatever that is.

        Raises:
            ChangesFailed: git can't be started.
        """
        placed = (f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}")
        return self._start(*placed, *self._settings, *arguments, stdin=stdin, output=output, more=environment)

    def stream(self, *arguments: str, stdin: IO[bytes]) -> subprocess.Popen[bytes]:
        """A command whose output is read as it comes."""
        command = ["git", f"--git-dir={self.git_dir}", *self._settings, *arguments]
        home = _environment(self.git_dir.parent)
        return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, env=home)

    def _start(
        self,
        *arguments: str,
        stdin: bytes = b"",
        output: int = subprocess.PIPE,
        more: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                ["git", *arguments],
                cwd=self.work_tree,
                env={**_environment(self.git_dir.parent), **(more or {})},
                input=stdin,
                stdout=output,
                stderr=subprocess.PIPE,
                check=False,
            )
        except OSError as error:
            raise ChangesFailed(f"git can't be started: {error.strerror}") from error

    def _checked(self, done: subprocess.CompletedProcess[bytes], what: str) -> bytes:
        if done.returncode != 0:
            raise ChangesFailed(f"git {what} failed ({done.returncode}): {said(done)}")
        return done.stdout or b""


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said on standard error, bounded."""
    return done.stderr.decode("utf-8", "replace").strip()[:_ERROR_CHARS]


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's but the path: no configuration, no prompts, no locale."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
    }
