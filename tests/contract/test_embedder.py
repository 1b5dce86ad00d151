"""What every `Embedder` and `ProfileVectorStore` does; and what the model's own adapter refuses (AT-2, AT-8)."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from orchestrator.adapters.db.profile_vectors import SqlProfileVectorStore
from orchestrator.adapters.embedding.minilm import LONGEST_TOKENS, VOCABULARY_SHA256, MiniLmEmbedder
from orchestrator.adapters.embedding.wordpiece import WordPiece
from orchestrator.ports.embedder import Embedder, EmbedderUnavailable
from orchestrator.ports.profile_vectors import ProfileVectorStore
from tests.fakes.embedder import MemoryProfileVectorStore, WordEmbedder

pytestmark = pytest.mark.xdist_group("minilm")

TEXTS = ["paint the walls", "mend the roof", "", "\x00\ud800", "word " * 3_000]


@pytest.fixture(scope="module")
def minilm() -> MiniLmEmbedder:
    return MiniLmEmbedder()


@pytest.fixture(params=["words", "minilm"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return WordEmbedder() if request.param == "words" else request.getfixturevalue("minilm")


async def test_each_text_has_a_row_of_length_one_that_its_neighbours_do_not_change(embedder: Embedder):
    rows = await embedder.embed(TEXTS)
    assert (rows.shape, rows.dtype) == ((len(TEXTS), embedder.dimension), np.float32)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    for text, row in zip(TEXTS, rows, strict=True):
        assert np.array_equal((await embedder.embed([text]))[0], row)
    assert (await embedder.embed([])).shape == (0, embedder.dimension)


async def test_the_same_meaning_is_nearer_than_another(embedder: Embedder):
    need, same, other = await embedder.embed(["paint the walls", "painting walls, the craft", "payroll"])
    assert need @ same > need @ other + 0.2


async def test_similarity_grows_with_the_score_and_stays_between_0_and_1(embedder: Embedder):
    found = embedder.calibration.similarities(np.array([-1, 0, 0.3, 0.6, 1], np.float32))
    assert found[0] == 0
    assert found[-1] == 1
    assert list(found) == sorted(found)


async def test_the_event_loop_runs_on_while_the_model_does(minilm: MiniLmEmbedder):
    await minilm.embed(["load it"])
    turns = 0
    async with anyio.create_task_group() as group:

        async def turn() -> None:
            nonlocal turns
            while True:
                await anyio.lowlevel.checkpoint()
                turns += 1

        group.start_soon(turn)
        await minilm.embed(["a long text " * 100] * 3)
        group.cancel_scope.cancel()
    assert turns > 100


async def test_the_model_knows_paraphrases(minilm: MiniLmEmbedder):
    need, right, wrong = await minilm.embed(
        ["my car does not start", "vehicle engine repair", "wedding cakes"]
    )
    assert need @ right > need @ wrong + 0.1


async def test_weights_that_are_not_the_known_ones_are_not_run(tmp_path: Path):
    other = tmp_path / "model.onnx"
    other.write_bytes(b"not the model")
    with pytest.raises(EmbedderUnavailable, match=r"its sha256 differs.*PORTSIDE_EMBEDDER_PATH"):
        await MiniLmEmbedder(other).embed(["x"])
    with pytest.raises(EmbedderUnavailable, match=r"can't be read \(No such file or directory\)"):
        await MiniLmEmbedder(tmp_path / "none").embed(["x"])


# Ids of the `tokenizers` library for the same vocabulary.
IDS = {
    "": [],
    "Expert in Python data pipelines": [6739, 1999, 18750, 2951, 13117, 2015],
    "naïve café, Ünïcode!": [15743, 7668, 1010, 27260, 999],
    "don't stop-me.now (ok)": [2123, 1005, 1056, 2644, 1011, 2033, 1012, 2085, 1006, 7929, 1007],
    "unaffable tokenization": [14477, 20961, 3468, 19204, 3989],
    "Straße in İstanbul": [2358, 27807, 1999, 9960],
    "東京 tower 中": [1879, 1755, 3578, 1746],
    "tab\tnew\nline  two": [21628, 2047, 2240, 2048],
    "emoji 🙂 end": [7861, 29147, 2072, 100, 2203],
    "a" * 101: [100],
    "x\u200by \u00ad z\x00": [1060, 2100, 1062],
    "C++ #1 a_b": [1039, 1009, 1009, 1001, 1015, 1037, 1035, 1038],
    "Привет мир": [1194, 16856, 10325, 25529, 15290, 22919, 1191, 10325, 16856],
    "e\u0301 = é": [1041, 1027, 1041],
    "ﬁne ½ ①": [1984, 2638, 1092, 100],
}


@pytest.fixture(scope="module")
def tokens() -> WordPiece:
    vocabulary = Path(str(files("orchestrator.adapters.embedding") / "vocab.txt")).read_bytes()
    assert hashlib.sha256(vocabulary).hexdigest() == VOCABULARY_SHA256
    return WordPiece(vocabulary.decode().split("\n")[:-1])


@pytest.mark.parametrize("text", IDS)
def test_token_ids_are_those_of_the_reference(tokens: WordPiece, text: str):
    assert tokens.ids(text, longest=LONGEST_TOKENS) == [101, *IDS[text], 102]


def test_a_long_text_is_cut_and_still_ends(tokens: WordPiece):
    ids = tokens.ids("word " * 1_000, longest=LONGEST_TOKENS)
    assert (len(ids), ids[0], ids[-1]) == (LONGEST_TOKENS, 101, 102)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def vectors(request: pytest.FixtureRequest) -> ProfileVectorStore:
    if request.param == "memory":
        return MemoryProfileVectorStore()
    return SqlProfileVectorStore(request.getfixturevalue(f"{request.param}_database"))


async def test_vectors_are_read_back_the_same_by_model_and_key(vectors: ProfileVectorStore):
    many = {f"k{number:04}": np.full((2, 3), number, np.float32) for number in range(1_200)}
    await vectors.save("m", many)
    await vectors.save("m", {"k0000": np.zeros((5, 3), np.float32)})
    found = await vectors.load("m", [*many, "unknown"])
    assert found.keys() == many.keys()
    assert all(
        np.array_equal(found[key], matrix) and found[key].dtype == np.float32 for key, matrix in many.items()
    )
    assert await vectors.load("another", list(many)) == {}
    assert await vectors.load("m", []) == {}
