"""A file that claims to be a component, read and recognised before anything parses it."""

from __future__ import annotations

import stat
from pathlib import Path

MAX_COMPONENT_BYTES = 64 << 20
COMPONENT_MAGIC = b"\0asm\x0d\0\x01\0"
_CORE_MAGIC = b"\0asm\x01\0\0\0"
_EXPECTED = (
    "expected a WebAssembly component of the world portside:tool/sandboxed-tool@1.0.0, or of another world "
    "with typed functions"
)


class NotAComponent(Exception):
    """The file is something else; the message says what, and what to do."""


def read_component(path: Path) -> bytes:
    """Read a component's bytes, whole.

    Raises:
        NotAComponent: what the file is instead, and the fix.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise NotAComponent(f"not a regular file; {_EXPECTED}")
        if status.st_size > MAX_COMPONENT_BYTES:
            raise NotAComponent(_too_big(status.st_size))
        with path.open("rb") as file:
            data = file.read(MAX_COMPONENT_BYTES + 1)
    except OSError as error:
        raise NotAComponent(f"it can't be read: {error.strerror}") from error
    if len(data) > MAX_COMPONENT_BYTES:  # it grew meanwhile
        raise NotAComponent(_too_big(len(data)))
    if not data.startswith(COMPONENT_MAGIC):
        raise NotAComponent(f"{_recognise(data)}; {_EXPECTED}")
    return data


def _too_big(size: int) -> str:
    mib = 1 << 20
    limit = f"over the limit of {MAX_COMPONENT_BYTES // mib} MiB"
    return f"{size // mib} MiB, {limit}; make it smaller with 'wasm-tools strip'"


def _recognise(data: bytes) -> str:
    if not data:
        return "the file is empty"
    if data.startswith(_CORE_MAGIC):
        if b"extism:host" in data:
            return "an Extism plug-in, which is a core module; build it as a component instead"
        return "a core module; wrap it with 'wasm-tools component embed' and 'wasm-tools component new'"
    if data.startswith(b"\0asm"):
        return "a WebAssembly header that is cut short or of an unknown version; build the file again"
    if data.startswith(b"\x7fELF"):
        return "a native program (ELF); compile it for wasm32 instead"
    if data.lstrip()[:1] == b"(":
        return "WebAssembly text; turn it into a binary with 'wasm-tools parse'"
    return "not WebAssembly; check which file was copied here"
