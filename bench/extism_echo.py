"""Runs in an environment of its own: how long an echo takes in Extism. A line in, a line of JSON out."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from extism import Plugin
from extism.extism import CompiledPlugin


def median_us(act: Callable[[], Any], expected: bytes, calls: int) -> float:
    times: list[float] = []
    for _ in range(calls):
        began = perf_counter()
        answer = act()
        times.append((perf_counter() - began) * 1e6)
        if bytes(answer) != expected:
            raise SystemExit(f"Extism answered {answer!r}")
    return statistics.median(times)


def main(module: str, text: str, calls: int) -> None:
    manifest = {
        "wasm": [{"data": Path(module).read_bytes()}],
        "memory": {"max_pages": 1_024},
        "timeout_ms": 30_000,
    }
    given = text.encode()
    compiled = CompiledPlugin(manifest, wasi=False)
    kept = Plugin(compiled)
    for _ in sys.stdin:
        figures = {
            "warm": median_us(lambda: kept.call("echo", given), given, calls),
            "fresh": median_us(lambda: Plugin(compiled).call("echo", given), given, calls),
        }
        print(json.dumps(figures), flush=True)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
