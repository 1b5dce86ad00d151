"""WASM tools as files: a component, and beside it the sidecar that configures it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SIDECAR = ".capabilities.json"

Fingerprint = tuple[tuple[int, ...], ...]
"""Differs when either file was written or replaced."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as it was when it was loaded, and the owner it is registered as.

    Attributes:
        problem: why what the file says now is not in use, and the tool stays as it was; "" when it is.
    """

    fingerprint: Fingerprint
    owner: str
    problem: str = ""


def fingerprints(directory: Path) -> dict[Path, Fingerprint]:
    """Every component that lies directly in the directory; none when there is no directory."""
    return {path: tuple(_mark(file) for file in pair(path)) for path in directory.glob("*.wasm")}


def _mark(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def pair(path: Path) -> Iterable[Path]:
    """The component and its sidecar."""
    return path, path.with_name(path.stem + SIDECAR)


def write_pair(path: Path, wasm: bytes, sidecar: bytes | None) -> None:
    """Write a component with its sidecar, or without one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, data in zip(pair(path), (wasm, sidecar), strict=True):
        file.unlink(missing_ok=True)
        if data is not None:
            file.write_bytes(data)


def move_pair(source: Path, target: Path) -> None:
    """Put both in place; a sidecar that does not come along goes."""
    for here, there in zip(pair(source), pair(target), strict=True):
        if here.exists():
            os.replace(here, there)  # noqa: PTH105 - both are paths already
        else:
            there.unlink(missing_ok=True)


def remove_pair(path: Path) -> None:
    """Remove what is there of both."""
    for file in pair(path):
        file.unlink(missing_ok=True)
