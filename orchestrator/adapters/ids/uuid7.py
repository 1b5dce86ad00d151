"""UUIDv7 identifiers: unique, and later ones sort later."""

from __future__ import annotations

import uuid_utils


class Uuid7Ids:
    """`Ids` by the uuid-utils library."""

    def new(self) -> str:
        """A fresh UUIDv7 as text."""
        return str(uuid_utils.uuid7())
