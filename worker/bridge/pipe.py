"""`python -m worker mcp`: standard input and output, joined to the worker's bridge socket.

It knows nothing and decides nothing: what comes in goes out. Standard library only: agents start it while
their user waits.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
from collections.abc import Sequence

SOCKET = "/tmp/portside/bridge.sock"  # noqa: S108 - the container's own /tmp
_CHUNK_BYTES = 64 * 1024


def main(argv: Sequence[str]) -> int:
    """Serve until either side ends.

    Returns:
        The exit code: 0 after a session, 1 when there is no worker to speak to.
    """
    parser = argparse.ArgumentParser(
        prog="python -m worker mcp",
        description="The tools of this job as an MCP server on standard input and output.",
    )
    parser.add_argument("--socket", default=SOCKET, help="where the job's worker listens")
    path: str = parser.parse_args(argv).socket
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.connect(path)
    except OSError as error:
        print(  # noqa: T201 - what an agent's log shows of a server that did not start
            f"worker mcp: no worker listens at {path} ({error.strerror}): this runs inside a job that was"
            " started with a command of its own (portside run --exec)",
            file=sys.stderr,
        )
        return 1
    _join(line)
    return 0


def _join(line: socket.socket) -> None:
    """Carry both directions; return when the worker has said its last word."""
    threading.Thread(target=_send, args=(line,), daemon=True).start()
    while chunk := _received(line):
        view = memoryview(chunk)
        while view:
            try:
                view = view[os.write(1, view) :]
            except BrokenPipeError:
                return


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(_CHUNK_BYTES)
    except ConnectionResetError:
        return b""


def _send(line: socket.socket) -> None:
    """Pass standard input on; its end is the end of what the client says, not of the session."""
    try:
        while chunk := os.read(0, _CHUNK_BYTES):
            line.sendall(chunk)
        line.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the worker is gone: the other direction ends by itself
