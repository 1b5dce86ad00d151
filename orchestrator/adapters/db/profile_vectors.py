"""`ProfileVectorStore` over SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.tables_profiles import profile_vectors

if TYPE_CHECKING:
    from orchestrator.ports.embedder import Matrix

# Below the number of parameters that any database takes in one statement.
_KEYS_AT_ONCE = 500


class SqlProfileVectorStore:
    """One row for each profile text and model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, model_id: str, keys: Collection[str]) -> dict[str, Matrix]:
        """Those of the keys that are there."""
        import numpy as np  # only where profiles are searched

        table = profile_vectors.c
        found: dict[str, Matrix] = {}
        for some in _portions(keys):
            query = select(table.key, table.rows, table.data).where(
                table.model_id == model_id, table.key.in_(some)
            )
            rows = await self._database.read(lambda connection, query=query: connection.execute(query).all())
            found |= {
                key: np.frombuffer(data, "<f4").astype(np.float32).reshape(count, -1)
                for key, count, data in rows
            }
        return found

    async def save(self, model_id: str, vectors: Mapping[str, Matrix]) -> None:
        """Keep these; a key that is there keeps what it has."""

        def put(connection: Connection) -> None:
            for key, matrix in vectors.items():
                data = matrix.astype("<f4").tobytes()
                row = {"model_id": model_id, "key": key, "rows": len(matrix), "data": data}
                insert_if_absent(connection, profile_vectors, row, key=["model_id", "key"])

        await self._database.write(put)


def _portions(keys: Collection[str]) -> Iterator[list[str]]:
    wanted = sorted(keys)
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        yield wanted[start : start + _KEYS_AT_ONCE]
