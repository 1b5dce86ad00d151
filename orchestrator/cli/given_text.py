"""Text that a command is given in a file, or on standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.cli.failures import UsageMistake


def read_text(file: Path, what: str) -> str:
    """The text of a file; `-` is standard input.

    Args:
        file: where it is.
        what: it is, for the message.

    Raises:
        UsageMistake: it can't be read, or is no UTF-8 text.
    """
    name = "standard input" if str(file) == "-" else str(file)
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageMistake(f"{what} can't be read from {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageMistake(f"{what} can't be read from {name}: it is not UTF-8 text") from None
