"""How near the right agents are to what is needed, over a file of profiles and needs.

`python -m tests.support.search_measure calibration.yaml` prints what a model's `Calibration` is read off. Never read it
off the held-out file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import numpy as np
import yaml

from orchestrator.adapters.embedding.minilm import MiniLmEmbedder
from orchestrator.domain.network.profiles import profile_texts
from orchestrator.services.profile_index import Profile, ProfileIndex
from tests.support.networks import as_agent

if TYPE_CHECKING:
    from orchestrator.ports.embedder import Scores

DATA = Path(__file__).resolve().parents[1] / "data" / "agent_search"


@dataclass(frozen=True)
class Need:
    """A query and the agent that answers it; None is nobody."""

    text: str
    answer: str | None


def load(name: str) -> tuple[list[dict[str, Any]], list[Need]]:
    """The profiles of a file, by name, and its needs."""
    found = cast("dict[str, Any]", yaml.safe_load((DATA / name).read_text(encoding="utf-8")))
    profiles = sorted(found["profiles"], key=lambda one: one["name"])
    for one in profiles:
        one["skills"] = [{"name": skill} for skill in one.get("skills", ())]
    needs = [Need(text, one["name"]) for one in profiles for text in one.pop("needs")]
    return profiles, needs + [Need(text, None) for text in found["unrelated"]]


async def main(name: str) -> None:
    """Print the measurement."""
    profiles, needs = load(name)
    agents = tuple(as_agent(one) for one in profiles)
    texts = [profile_texts(agent) for agent in agents]
    embedder = MiniLmEmbedder()
    vectors = [await embedder.embed(one.every) for one in texts]
    profiles = zip(agents, texts, vectors, strict=True)
    index = ProfileIndex.of(0, {}, [Profile(agent, one, rows) for agent, one, rows in profiles])
    scores = {need: index.scores(await embedder.embed([need.text])) for need in needs}
    right = [(one, one[index.places[need.answer]]) for need, one in scores.items() if need.answer]  # pyright: ignore[reportArgumentType]
    unrelated = np.array([one.max() for need, one in scores.items() if need.answer is None])
    ranks = np.array([(one > own).sum() for one, own in right])
    own = np.array([own for _, own in right], np.float32)
    similar = embedder.calibration.similarities
    lines = [
        f"{len(agents)} profiles, {len(right)} needs, {len(unrelated)} that nobody answers",
        f"score of the right agent, percentiles 5 10 25 50 90: {_percentiles(own, 5, 10, 25, 50, 90)}",
        f"best score of others, percentiles 50 75 90 100: {_percentiles(unrelated, 50, 75, 90, 100)}",
        f"right agent first {(ranks == 0).mean():.2f}, among three {(ranks < 3).mean():.2f}",
        f"below 0.2: right {(similar(own) < 0.2).mean():.2f}, others {(similar(unrelated) < 0.2).mean():.2f}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _percentiles(scores: Scores, *which: int) -> str:
    return " ".join(f"{one:.3f}" for one in np.percentile(scores, which))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
