"""The figures as a table, and as JSON with what they depend on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

from bench.measurements import Figure

_LIBRARIES = ("uvicorn", "uvloop", "httptools", "starlette", "fastapi", "jsonschema-rs", "sqlalchemy")


def table(found: Sequence[Figure]) -> str:
    """One line a figure."""
    lines = [f"{'':<28} {'callers':>7} {'CPU us/call':>12} {'x bare':>7} {'calls/s':>9} {'spread':>7}"]
    lines += [
        f"{one.case:<28} {one.callers:>7} {one.cpu_us:>12.1f} {one.ratio:>7.2f}"
        f" {one.calls_per_s:>9,.0f} {one.spread:>7.2f}"
        for one in found
    ]
    return "\n".join(lines)


def as_json(found: Sequence[Figure], *, load_before: float) -> str:
    """The figures, the versions and the machine."""
    whole = {
        "figures": [asdict(one) for one in found],
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cores": os.cpu_count(),
            "load_before": load_before,
            "load_after": os.getloadavg()[0],
        },
    }
    return json.dumps(whole, indent=2) + "\n"
