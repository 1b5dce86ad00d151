"""Which entries `.gitignore` files leave out."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one directory: its own, and those of the directories above it.

    Attributes:
        directory: where the rules' paths start.
        spec: the directory's own rules; None without a file.
        above: the rules of the parent; None at the top.
    """

    directory: Path
    spec: GitIgnoreSpec | None
    above: IgnoreRules | None

    @classmethod
    def of(cls, directory: Path, above: IgnoreRules | None) -> IgnoreRules:
        """Read a directory's rules."""
        return cls(directory, _read_spec(directory / ".gitignore"), above)

    def ignores(self, name: str, *, is_directory: bool) -> bool:
        """Whether an entry of this directory is left out; the deepest rule that speaks decides."""
        if name == ".git":
            return True
        path = f"{name}/" if is_directory else name
        rules: IgnoreRules | None = self
        while rules is not None:
            if rules.spec is not None:
                said = rules.spec.check_file(path).include
                if said is not None:
                    return said
            path = f"{rules.directory.name}/{path}"
            rules = rules.above
        return False


def _read_spec(path: Path) -> GitIgnoreSpec | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None  # none there, or a link or something odd, which git does not follow either
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        lines = stream.read(_MAX_BYTES).decode("utf-8", "surrogateescape").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except GitIgnorePatternError:
        return GitIgnoreSpec.from_lines(line for line in lines if _is_valid(line))


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except GitIgnorePatternError:
        return False  # git passes over a malformed line too
    return True
