"""The throw-away process in which untrusted bytes are compiled: `python -m wasm_tools.compile_child`.

Reads a component from standard input and writes machine code to the file named on the command line. The
compiler can't be interrupted and its memory can't be bounded from inside; a process of its own can.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

EXIT_REFUSED = 3


def main(out: str, memory_bytes: int, cpu_s: int, file_bytes: int) -> int:
    """Compile within the limits; a refusal's reason goes to standard error."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    from wasmtime import Engine, WasmtimeError  # only now: the limits hold for its code too
    from wasmtime.component import Component

    from wasm_tools.engine import make_config

    try:
        code = Component(Engine(make_config()), sys.stdin.buffer.read()).serialize()
    except WasmtimeError as error:
        sys.stderr.write(" ".join(str(error).split())[:500])
        return EXIT_REFUSED
    Path(out).write_bytes(code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
