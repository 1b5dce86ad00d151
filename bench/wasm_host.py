"""A WASM runtime as the orchestrator opens it, and the text that every echo is asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from wasm_tools.runtime import WasmRuntime
from worker.clock import SystemClock

TEXT = "a text of no importance"


@asynccontextmanager
async def runtime(cache: Path) -> AsyncGenerator[WasmRuntime]:
    """Closed at the end."""
    made = WasmRuntime(cache_dir=cache, cache_key=b"k" * 32, clock=SystemClock())
    try:
        yield made
    finally:
        await made.close()
