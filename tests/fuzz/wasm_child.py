"""Loads what it is given and calls it; a line in, a line out. Its death or silence is the finding.

Components are compiled in this process, which may die of it, and put where the loader finds them: a process for each
would take most of the time.
"""

from __future__ import annotations

import asyncio
import base64
import faulthandler
import json
import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from wasmtime import Engine, WasmtimeError
from wasmtime.component import Component

from tests.support.wasm.guests import CALC
from tests.support.wasm.workshop import RealClock
from tool_registry.context import ToolContext
from tool_registry.errors import CallError
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.visibility import ToolState
from wasm_tools.cache import CompiledCache
from wasm_tools.component_file import COMPONENT_MAGIC
from wasm_tools.engine import make_config
from wasm_tools.granted_host import Outside
from wasm_tools.limits import Limits
from wasm_tools.loading import FAULT, load_wasm_tool
from wasm_tools.runtime import WasmRuntime

_KEY = b"k" * 32
_LIMITS = Limits(timeout_s=1.0)
_MOST_ANSWER_BYTES = 8 * _LIMITS.result_bytes


class Bench:
    """One runtime for all cases, as in an orchestrator."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._engine = Engine(make_config())
        self._cache = CompiledCache(home / "cache", _KEY)
        self._runtime = WasmRuntime(cache_dir=home / "cache", cache_key=_KEY, clock=RealClock())

    async def run(self, case: dict[str, Any]) -> str:
        """What came of a case: the offer's state, or how its calls ended.

        Raises:
            BaseException: the finding, if it is anything but what a call may raise.
        """
        wasm = base64.b64decode(case["wasm"])
        path = self._home / "guest.wasm"
        path.write_bytes(wasm)
        sidecar = path.with_name("guest.capabilities.json")
        sidecar.unlink(missing_ok=True)
        if case["sidecar"] is not None:
            sidecar.write_bytes(base64.b64decode(case["sidecar"]))
        if not self._compiled(wasm):
            return "no component"
        outside = Outside(resolve=_nowhere, secret=_no_secret)
        offer = await load_wasm_tool(path, self._runtime, outside=outside, ceiling=_LIMITS)
        assert offer.reason or offer.state is ToolState.ACTIVE, "an offer without a reason"
        offer.reason.encode()
        assert FAULT not in offer.reason, "the traceback is above"
        return await self._calls(offer, case["params"])

    async def close(self) -> None:
        """Prove that the runtime still works, and end it."""
        calc = (await load_wasm_tool(CALC, self._runtime)).tool
        assert "42" in str((await calc.execute({"expression": "6*7"}, ToolContext("job", "call"))).result)
        assert self._runtime.stuck == 0, "a guest is left behind"
        await self._runtime.close()

    def _compiled(self, wasm: bytes) -> bool:
        """Whether it compiles; what is no component at all is left to the loader."""
        if not wasm.startswith(COMPONENT_MAGIC) or self._cache.find(wasm):
            return True
        try:
            code = Component(self._engine, wasm).serialize()
        except WasmtimeError:
            return False
        with self._cache.scratch() as scratch:
            scratch.write_bytes(code)
            self._cache.adopt(wasm, scratch)
        return True

    async def _calls(self, offer: Offer, params: dict[str, Any]) -> str:
        registry = ToolRegistry()
        registry.replace("guest.wasm", [offer])
        execute = ToolExecutor(registry, Surroundings(self._runtime.clock)).execute
        ended: set[str] = {offer.state}
        for entry in registry.entries():
            fitting = {name: one for name, one in params.items() if _has(entry.definition.parameters, name)}
            for given in (params, fitting):
                try:
                    output = await execute(entry.name, given, ToolContext("job", "call"))
                except CallError as error:
                    str(error).encode()
                    ended.add(getattr(error, "cause", None) or error.code)
                else:
                    assert len(json.dumps(output.as_json()).encode()) < _MOST_ANSWER_BYTES
                    ended.add("answered")
        return ", ".join(sorted(ended))


def _has(schema: Any, name: str) -> bool:
    properties = schema.get("properties") if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return isinstance(properties, dict) and name in properties


async def _nowhere(_host: str, _port: int) -> list[str]:
    raise OSError


async def _no_secret(_name: str) -> None:
    return None


async def main() -> None:
    """Answer every line; the end of the input ends it."""
    faulthandler.enable()
    logging.getLogger("wasm_tools.tool").disabled = True  # what guests say
    logging.getLogger("wasm_tools.link").disabled = True
    home = Path(tempfile.mkdtemp(prefix="portside-fuzz-"))
    try:
        bench = Bench(home)
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(await bench.run(json.loads(line)), flush=True)
        await bench.close()
        print("sound", flush=True)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    asyncio.run(main())
