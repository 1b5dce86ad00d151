"""One output stream of a running command."""

from __future__ import annotations

import asyncio
import codecs
import os
from pathlib import Path

from worker.tools.output_buffer import HEAD_BYTES, TAIL_BYTES, HeadAndTail, SavedOutput
from worker.tools.terminal_text import TerminalText


class CommandOutput(asyncio.Protocol):
    """Reads a pipe to its end, shows head and tail, and saves the whole once it gets long.

    Args:
        directory: where a long output is saved.
        name: start of that file's name.
        save_from_start: save short outputs as well.

    Raises:
        OSError: saving from the start was asked for, and the file can't be made.
    """

    def __init__(self, directory: Path, name: str, *, save_from_start: bool = False) -> None:
        self._directory = directory
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._terminal = TerminalText()
        self._shown = HeadAndTail()
        self._unsaved = bytearray()
        self._transport: asyncio.BaseTransport | None = None
        self._frozen = False
        self.ended = asyncio.Event()
        self.saved: SavedOutput | None = None
        self._savable = True
        if save_from_start:
            self.saved = SavedOutput(directory, name)

    async def open_pipe(self) -> int:
        """Start reading; return the descriptor of the writing end, which the caller closes."""
        reading, writing = os.pipe()
        await asyncio.get_running_loop().connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
        return writing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop: the pipe is being read."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the loop: a piece came."""
        self._store(data)
        if not self._frozen:
            self._shown.feed(self._terminal.feed(self._decoder.decode(data)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop: every writer has closed the pipe, or we did."""
        self.ended.set()
        if self.saved is not None:
            self.saved.close()

    def save(self) -> None:
        """Save the output from its beginning on, and all that still comes.

        Without a place for the file, head and tail are all that is kept; the command goes on.
        """
        if self.saved is not None or not self._savable:
            return
        try:
            self.saved = SavedOutput(self._directory, self._name)
            self.saved.write(bytes(self._unsaved))
        except OSError:
            self._savable = False
        self._unsaved.clear()

    @property
    def saved_path(self) -> str | None:
        """Where the output is saved, and why not all of it is there, if that is so."""
        if self.saved is None:
            return None
        failure = self.saved.failure
        return f"{self.saved.path} (incomplete: {failure})" if failure else str(self.saved.path)

    def freeze(self) -> HeadAndTail:
        """Settle what the caller is shown; later output is only saved."""
        if not self._frozen:
            self._frozen = True
            rest = self._decoder.decode(b"", final=True)
            self._shown.feed(self._terminal.feed(rest) + self._terminal.finish())
            if self._shown.truncated:
                self.save()  # escaped bytes take more room than they came in
                if self.saved is not None and self.ended.is_set():
                    self.saved.close()
            elif self.saved is not None and self.ended.is_set():
                self.saved.remove()
                self.saved = None
        return self._shown

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

    def _store(self, data: bytes) -> None:
        if self.saved is not None:
            self.saved.write(data)
            return
        if self._savable:
            self._unsaved += data
        if len(self._unsaved) > HEAD_BYTES + TAIL_BYTES:
            self.save()
