"""What any engine must do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from container.engine.sandbox import (
    EngineDescription,
    SandboxEvent,
    SandboxRef,
    SandboxSpec,
    SandboxStatus,
)


class SandboxEngine(Protocol):
    """Makes, watches and removes sandboxes.

    Every method has a deadline of its own and raises `EngineUnavailable` when the engine does not answer.
    One contract suite (`tests/contract/test_engine.py`) runs over every implementation.
    """

    async def describe(self) -> EngineDescription:
        """What this engine really isolates and limits."""
        ...

    async def prepare(self, image: str) -> str:
        """Make sure that `image` is there.

        Returns:
            The image's immutable id.

        Raises:
            ImageMissing: it is not there and can't be had.
        """
        ...

    async def launch(self, spec: SandboxSpec) -> SandboxRef:
        """Create and start; the same name again answers the sandbox that exists.

        A start that fails leaves nothing behind.

        Raises:
            ImageMissing: the image is not there.
            LimitNotEnforceable: an explicit limit can't be held.
            LaunchFailed: the engine refused.
        """
        ...

    async def stop(self, ref: SandboxRef, grace_s: float) -> None:
        """SIGTERM, `grace_s` seconds, SIGKILL; returns when nothing runs. Stopping twice is fine."""
        ...

    async def inspect(self, ref: SandboxRef) -> SandboxStatus:
        """Look at it. A sandbox that is not there has state `GONE`."""
        ...

    async def list(self, labels: Mapping[str, str]) -> list[SandboxStatus]:
        """All sandboxes, in any state, that carry these labels."""
        ...

    def events(self) -> AsyncIterator[SandboxEvent]:
        """Changes of sandboxes, endless.

        A `RESYNC` marks the moment from which all are told: the first one, and each after a broken stream.
        """
        ...

    async def logs(self, ref: SandboxRef, *, tail_bytes: int = 65_536) -> str:
        """The last bytes that it wrote, decoded, bounded."""
        ...

    def collect(self, ref: SandboxRef, path: str) -> AsyncIterator[bytes]:
        """A tar stream of a path inside, running or stopped.

        Raises:
            SandboxNotFound: it is not there.
        """
        ...

    async def remove(self, ref: SandboxRef) -> None:
        """Remove it with its volumes. Removing twice is fine."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads."""
        ...
