"""`python -m bench.wasm_memory GUEST.wasm CALLS`: what its process holds after 100 calls and after all."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from bench.wasm_host import TEXT, runtime
from tool_registry.context import ToolContext
from tool_registry.errors import ToolFailed
from wasm_tools.loading import load_wasm_tool

_FIRST = 100


async def main(guest: Path, calls: int) -> None:
    with tempfile.TemporaryDirectory(prefix="portside-bench-") as cache:
        async with runtime(Path(cache)) as made:
            offer = await load_wasm_tool(guest, made)
            tools = {one.tool.definition.name: one.tool for one in (offer, *offer.also)}
            half = tools.get("half_half")
            tool, params = (half, {"n": 8, "most": 4}) if half else (offer.tool, {"text": TEXT})
            held: list[int] = []
            for number in range(1, calls + 1):
                with suppress(ToolFailed):  # one of the guests traps
                    await tool.execute(params, ToolContext("job", "call"))
                if number in {_FIRST, calls}:
                    gc.collect()
                    held.append(_resident_bytes())
    print(json.dumps({"after_100": held[0], "after_all": held[-1], "calls": calls}))


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
