"""What was agreed to of each WASM tool: its capabilities file, as it was when a person said yes."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.services.tool_files import SIDECAR


class Agreements:
    """One copy of the file for each tool, in a directory of the installation's own.

    It lies outside of the tools directory: whatever copies tools there brings no agreement with it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, stem: str) -> bytes:
        """What was agreed to; empty when nothing was."""
        try:
            return self._file(stem).read_bytes()
        except FileNotFoundError:
            return b""

    def keep(self, stem: str, sidecar: bytes) -> None:
        """Remember an agreement in place of the one before."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file(stem).with_suffix(f".{os.getpid()}")
        draft.write_bytes(sidecar)
        draft.replace(self._file(stem))

    def forget(self, stem: str) -> None:
        """The tool is gone; another of its name begins anew."""
        self._file(stem).unlink(missing_ok=True)

    def _file(self, stem: str) -> Path:
        return self._directory / f"{stem}{SIDECAR}"
