"""What one call of a guest may use."""

from __future__ import annotations

from dataclasses import dataclass, replace

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one call; the defaults are the most that a sidecar may ask for.

    Attributes:
        timeout_s: wall time from the call's start, waiting included.
        memory_bytes: of each linear memory.
        memories: number of linear memories.
        tables: number of tables.
        table_elements: elements of each table.
        instances: core instances inside the component.
        result_bytes: UTF-8 size of the output or error.
        log_lines: lines that are kept; later ones are counted and dropped.
        log_line_bytes: what is kept of one line.
        http_requests: requests, redirects included.
        http_bytes: headers and bodies of requests and responses together.

    Source: measured needs of guests from six languages; the largest are CPython's 12.5 MB and 5,674
    table elements, and three memories and 13 instances of QuickJS.
    """

    timeout_s: float = 30.0
    memory_bytes: int = 64 * MIB
    memories: int = 4
    tables: int = 8
    table_elements: int = 20_000
    instances: int = 64
    result_bytes: int = MIB
    log_lines: int = 1_000
    log_line_bytes: int = 4_096
    http_requests: int = 50
    http_bytes: int = 10 * MIB

    def for_registration(self) -> Limits:
        """For `schema()` and `description()`, which compute nothing; time for a slow machine's start."""
        return replace(
            self,
            timeout_s=10.0,
            result_bytes=256 * 1024,
            log_lines=min(self.log_lines, 100),
        )
