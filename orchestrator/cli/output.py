"""Where a command writes: people read a console, programs read JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console


@dataclass(frozen=True, slots=True)
class Output:
    """One command's output.

    Attributes:
        as_json: write JSON to standard output and everything else to standard error.
        console: for people.
    """

    as_json: bool = False
    console: Console = field(default_factory=lambda: Console(emoji=False))
    errors: Console = field(default_factory=lambda: Console(stderr=True, emoji=False))

    def json(self, value: Any) -> None:
        """Write one JSON document."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def json_line(self, value: Any) -> None:
        """Write one line of a JSON stream."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def say(self, line: str) -> None:
        """Tell a person what is going on; never mixed into JSON."""
        target = self.errors if self.as_json else self.console
        target.print(line, style="dim", markup=False, highlight=False)
