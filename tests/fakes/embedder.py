"""An embedder that needs no model: texts are near when they share words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import numpy as np

from orchestrator.ports.embedder import Calibration, EmbedderUnavailable

if TYPE_CHECKING:
    from orchestrator.ports.embedder import Matrix


class WordEmbedder:
    """`Embedder` over words.

    Attributes:
        seen: every text that it was given.
        broken: why it can't run.
        gate: it waits for this one before it answers.
    """

    model_id = "words-1"
    dimension = 256
    calibration = Calibration("words", floor=0.0, ceiling=1.0)

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.broken = ""
        self.gate: anyio.Event | None = None

    async def embed(self, texts: Sequence[str]) -> Matrix:
        await anyio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise EmbedderUnavailable(self.broken)
        self.seen += texts
        rows = [self._row(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), self.dimension)

    def _row(self, text: str) -> Matrix:
        row = np.full(self.dimension, 1e-6, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:2]) % self.dimension] += 1
        return (row / np.linalg.norm(row)).astype(np.float32)


class MemoryProfileVectorStore:
    """Vectors that are gone with the process."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Matrix] = {}

    async def load(self, model_id: str, keys: Collection[str]) -> dict[str, Matrix]:
        await anyio.lowlevel.checkpoint()
        return {key: self.rows[model_id, key] for key in keys if (model_id, key) in self.rows}

    async def save(self, model_id: str, vectors: Mapping[str, Matrix]) -> None:
        await anyio.lowlevel.checkpoint()
        for key, matrix in vectors.items():
            self.rows.setdefault((model_id, key), matrix)
