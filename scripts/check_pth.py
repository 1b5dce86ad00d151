"""Fail on a `.pth` file nobody expects: such a file runs code whenever Python starts."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

EXPECTED = {"portside.pth", "distutils-precedence.pth", "_virtualenv.pth", "a1_coverage.pth"}


def main() -> int:
    site = Path(sysconfig.get_path("purelib"))
    unknown = sorted(file.name for file in site.glob("*.pth") if file.name not in EXPECTED)
    for name in unknown:
        print(f"{site / name}: unknown .pth file; find out which package brings it, and why", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
