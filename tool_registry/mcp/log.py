"""What one server wrote beside the protocol: a bounded memory of it, with secrets masked."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable

logger = logging.getLogger("tool_registry.mcp")

MAX_LINES = 200
MAX_LINE_CHARS = 1_000
MIN_SECRET_CHARS = 3


class ServerLog:
    """The last lines of a server's stderr and log messages, and its first stdout noise.

    Everything that leaves here has the server's secrets replaced by `***`.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self._secrets: tuple[str, ...] = ()
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._noise: list[str] = []
        self._noise_count = 0

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these values from now on."""
        known = {value for value in secrets if len(value) >= MIN_SECRET_CHARS}
        self._secrets = tuple(sorted(known | set(self._secrets), key=len, reverse=True))

    def masked(self, text: str) -> str:
        """The text without the server's secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def add(self, line: str) -> None:
        """Remember a line of stderr, or a log message."""
        shown = self.masked(line[: 2 * MAX_LINE_CHARS]).rstrip()[:MAX_LINE_CHARS]
        if shown:
            self._lines.append(shown)
            logger.debug("%s: %s", self.server, shown)

    def add_noise(self, line: bytes) -> None:
        """Remember that a stdout line was no message; the first three are kept, all are counted."""
        shown = self.masked(line[:400].decode("utf-8", "replace")).strip()[:200]
        if not shown:
            return
        self._noise_count += 1
        if len(self._noise) < 3:
            self._noise.append(shown)
            logger.warning(
                "MCP server %s wrote text to stdout that is no JSON-RPC message; skipped: %r",
                self.server,
                shown,
            )

    def tail(self, lines: int = 5) -> str:
        """The last lines, joined; "" when there is none."""
        return "\n".join(list(self._lines)[-lines:])

    def noise(self) -> str:
        """A sentence about stdout noise; "" when there was none."""
        if not self._noise_count:
            return ""
        return (
            f"it wrote {self._noise_count} line(s) to stdout that are no JSON-RPC messages"
            f" (first: {', '.join(map(repr, self._noise))}); a server must log to stderr"
        )
