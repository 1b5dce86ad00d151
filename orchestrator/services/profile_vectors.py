"""Vectors of profiles: made once for each text, and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.domain.network.profiles import ProfileTexts
from orchestrator.domain.network.refusals import Refusal
from orchestrator.ports.embedder import Embedder
from orchestrator.ports.profile_vectors import ProfileVectorStore
from orchestrator.services.network_members import Refused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.ports.embedder import Matrix

    Row: TypeAlias = NDArray[np.float32]

PATIENCE_S = 20.0
# Kept together: what a kill can lose of the work.
_PORTION = 16


class ProfileVectors:
    """The vectors of one network's profile texts, from memory, from the store, or made now.

    Making goes on when nobody waits for it any more. What was handed out is not kept in memory.

    Args:
        embedder: makes them.
        store: keeps them.
        patience_s: how long a search waits for what is being made.
    """

    def __init__(
        self, embedder: Embedder, store: ProfileVectorStore, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._patience_s = patience_s
        self._known: dict[str, Matrix] = {}
        self._making: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Make no more."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)

    async def of(self, texts: Mapping[str, ProfileTexts], at_hand: Mapping[str, Row]) -> dict[str, Matrix]:
        """For each key a matrix: one row for `every` of its texts.

        Args:
            texts: of profiles, by their keys.
            at_hand: rows of single texts that need not be made.

        Raises:
            Refused: `search_unavailable`: there is so much to make that it takes longer.
            EmbedderUnavailable: there is something to make, and the model can't be run.
        """
        while missing := {key: one for key, one in texts.items() if key not in self._known}:
            making = self._making
            if making is None or making.done():
                self._known = {key: one for key, one in self._known.items() if key in texts}
                making = self._making = asyncio.get_running_loop().create_task(self._make(missing, at_hand))
            await asyncio.wait({making}, timeout=self._patience_s)
            if not making.done():
                raise Refused(_not_ready(len(texts), sum(key not in self._known for key in texts)))
            if not making.cancelled():
                making.result()
        return {key: self._known.pop(key) for key in texts}

    async def _make(self, missing: Mapping[str, ProfileTexts], at_hand: Mapping[str, Row]) -> None:
        self._known |= await self._store.load(self._embedder.model_id, list(missing))
        left = iter({key: one for key, one in missing.items() if key not in self._known}.items())
        while portion := dict(islice(left, _PORTION)):
            made = {key: await self._rows(one.every, at_hand) for key, one in portion.items()}
            await self._store.save(self._embedder.model_id, made)
            self._known |= made

    async def _rows(self, texts: Sequence[str], at_hand: Mapping[str, Row]) -> Matrix:
        import numpy as np  # only where profiles are searched

        new = [text for text in texts if text not in at_hand]
        made = dict(zip(new, await self._embedder.embed(new), strict=True))
        return np.stack([at_hand[text] if text in at_hand else made[text] for text in texts])


def _not_ready(wanted: int, missing: int) -> Refusal:
    return Refusal(
        "search_unavailable",
        f"{wanted - missing} of {wanted} profiles are prepared for searching so far and the others follow; "
        "search again in a minute, or look with network_discover",
        {"retryable": True},
    )
