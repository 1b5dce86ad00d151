"""Processes whose pipes are still open: a loop that ends with them says so in a later test, or on a user's terminal."""

from __future__ import annotations

import asyncio
import gc


def open_processes() -> list[asyncio.SubprocessTransport]:
    """Those of asyncio in this Python that nobody closed yet."""
    gc.collect()
    return [
        one
        for one in gc.get_objects()
        if issubclass(type(one), asyncio.SubprocessTransport) and not one.is_closing()
    ]
