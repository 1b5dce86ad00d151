"""How a command ends when it can't do what was asked."""

from __future__ import annotations

FAILED = 1
USAGE = 2
JOB_FAILED = 3
INTERRUPTED = 130


class CommandFailed(Exception):
    """One line for the person: what is wrong, and what to do.

    Attributes:
        exit_code: 1 for a failure, 2 for a usage mistake, 3 when the job itself failed.
    """

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class UsageMistake(CommandFailed):
    """The command line can't be understood."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=USAGE)
