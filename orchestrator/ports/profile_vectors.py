"""Where the vectors of profiles are kept, so that no text is embedded twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from orchestrator.ports.embedder import Matrix


class ProfileVectorStore(Protocol):
    """Matrices by model and by the key of the texts that they were made of, durable.

    Other texts have another key, so nothing in it is ever out of date.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def load(self, model_id: str, keys: Collection[str]) -> dict[str, Matrix]:
        """Those of the keys that are there."""
        ...

    async def save(self, model_id: str, vectors: Mapping[str, Matrix]) -> None:
        """Keep these; a key that is there keeps what it has."""
        ...
