"""A job's own socket."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol


class JobSockets(Protocol):
    """One directory a job with one unix socket; the socket a request came in on names its job."""

    async def open(self, job_id: str, token: str | None) -> Path:
        """Make the directory and listen; open again after a restart keeps the directory.

        Args:
            job_id: whose requests come in on it.
            token: put beside the socket for the worker to read; None leaves what is there.

        Returns:
            The directory, to be mounted read-only.
        """
        ...

    def remove_token(self, job_id: str) -> None:
        """Take the token file away; done twice is fine."""
        ...

    def job_ids(self) -> Collection[str]:
        """The jobs that are listened for."""
        ...

    async def remove_others(self, job_ids: Collection[str]) -> None:
        """Remove what a killed run left for any job but these; before the first `open`."""
        ...

    async def close(self, job_id: str) -> None:
        """Stop listening and remove the directory."""
        ...
