"""Where a command writes: people read a console, programs read JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType

from orchestrator.cli.plain_console import plain
from orchestrator.cli.visible import visible

_WIDE = 240


def _console() -> Console:
    # A pipe has no width: programs and tests get whole lines.
    return plain(Console(emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE))


def _errors() -> Console:
    return plain(Console(stderr=True, emoji=False, soft_wrap=True))


@dataclass(frozen=True, slots=True)
class Output:
    """One command's output.

    Attributes:
        as_json: write JSON to standard output and everything else to standard error.
        console: for people.
    """

    as_json: bool = False
    console: Console = field(default_factory=_console)
    errors: Console = field(default_factory=_errors)

    def json(self, value: Any) -> None:
        """Write one JSON document."""
        self.raw(_encoded(value, indent=2))

    def json_line(self, value: Any) -> None:
        """Write one line of a JSON stream."""
        self.raw(_encoded(value))

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def show(self, value: Any, *people: RenderableType) -> None:
        """Write `value` for programs, or `people` for people."""
        if self.as_json:
            self.json(value)
            return
        for one in people:
            self.console.print(one, markup=False, highlight=False)

    def diff(self, patch: bytes) -> None:
        """Show a patch: coloured on a terminal, byte for byte elsewhere."""
        if not self.console.is_terminal:
            self.raw(patch)
        elif patch.strip():
            from rich.syntax import Syntax  # its lexers take a while to load

            text = visible(patch.decode("utf-8", "replace"))
            self.console.print(Syntax(text, "diff", background_color="default"))

    def say(self, line: str) -> None:
        """Tell a person what is going on; never mixed into JSON."""
        target = self.errors if self.as_json else self.console
        target.print(line, style="dim", markup=False, highlight=False)


def _encoded(value: Any, *, indent: int | None = None) -> bytes:
    # A lone surrogate, from a name that is no UTF-8, becomes the JSON escape of the same value.
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode("utf-8", "backslashreplace")
