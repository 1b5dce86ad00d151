"""A runtime for tests, and the way from a guest's source to a tool."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.wasm.guests import Source, build
from tool_registry.context import ToolContext
from tool_registry.registry import Offer
from tool_registry.tool import Tool
from tool_registry.visibility import ToolState
from wasm_tools.granted_host import Outside
from wasm_tools.host import Hosts
from wasm_tools.limits import Limits
from wasm_tools.loading import load_wasm_tool
from wasm_tools.runtime import WasmRuntime


class RealClock:
    """The process's clocks."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Workshop:
    """Builds guests into a directory and loads them into one runtime."""

    def __init__(self, directory: Path, runtime: WasmRuntime) -> None:
        self.directory = directory
        self.runtime = runtime

    async def offer(
        self,
        source: Source,
        *,
        sidecar: dict[str, Any] | None = None,
        host: Hosts | None = None,
        outside: Outside = Outside(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        name: str = "guest",
    ) -> Offer:
        path = build(source, self.directory / f"{name}.wasm")
        if sidecar is not None:
            (self.directory / f"{name}.capabilities.json").write_text(json.dumps(sidecar))
        return await load_wasm_tool(path, self.runtime, host=host, outside=outside, ceiling=limits)

    async def tool(
        self,
        source: Source,
        *,
        sidecar: dict[str, Any] | None = None,
        host: Hosts | None = None,
        outside: Outside = Outside(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        name: str = "guest",
    ) -> Tool:
        offer = await self.offer(
            source, sidecar=sidecar, host=host, outside=outside, limits=limits, name=name
        )
        assert offer.state is ToolState.ACTIVE, offer.reason
        return offer.tool


@asynccontextmanager
async def workshop(directory: Path, **options: Any) -> AsyncGenerator[Workshop]:
    runtime = WasmRuntime(cache_dir=directory / "cache", cache_key=b"k" * 32, clock=RealClock(), **options)
    try:
        yield Workshop(directory, runtime)
    finally:
        await runtime.close()


def context(*, job_id: str = "job", call_id: str = "call", deadline: float | None = None) -> ToolContext:
    return ToolContext(job_id, call_id, deadline=deadline)


async def no_thread_is_stuck(runtime: WasmRuntime) -> None:
    """Wait until every thread has come back; fail after 10 s."""
    deadline = time.monotonic() + 10
    while runtime.stuck:
        assert time.monotonic() < deadline, f"{runtime.stuck} threads are still stuck"
        await asyncio.sleep(0.01)
