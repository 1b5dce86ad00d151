"""Sandboxes for tests: specs with unique names, and the end of a sandbox as something to wait for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from container.engine.port import SandboxEngine
from container.engine.sandbox import SandboxRef, SandboxSpec, SandboxState, SandboxStatus
from tests.support.waiting import until


class Sandboxes:
    """Launches on one engine and removes everything at the end.

    Every sandbox carries the label `portside.test` with a value of this test alone.
    """

    def __init__(self, engine: SandboxEngine, image: str) -> None:
        self.engine = engine
        self.image = image
        self.labels = {"portside.test": uuid4().hex}

    def spec(self, command: Iterable[str], **changes: Any) -> SandboxSpec:
        """A spec with a fresh name; `changes` are any of its fields."""
        settings: dict[str, Any] = {
            "name": f"portside-test-{uuid4().hex[:12]}",
            "image": self.image,
            "labels": self.labels,
            "socket_dir": None,
            "deadline_s": 60.0,
            "stop_grace_s": 2.0,
        }
        return SandboxSpec(command=tuple(command), **(settings | changes))

    async def launch(self, *command: str, **changes: Any) -> SandboxRef:
        """Launch a command."""
        return await self.engine.launch(self.spec(command, **changes))

    async def finish(self, ref: SandboxRef, *, within_s: float = 30.0) -> SandboxStatus:
        """Wait until it has ended."""

        async def ended() -> bool:
            return (await self.engine.inspect(ref)).state in {SandboxState.EXITED, SandboxState.GONE}

        await until(ended, within_s=within_s)
        return await self.engine.inspect(ref)

    async def printed(self, ref: SandboxRef, text: str) -> None:
        """Wait until it has printed `text`."""

        async def there() -> bool:
            return text in await self.engine.logs(ref)

        await until(there)

    async def run(self, *command: str, **changes: Any) -> tuple[SandboxStatus, str]:
        """Launch, wait for the end, and read what it printed."""
        ref = await self.launch(*command, **changes)
        return await self.finish(ref), await self.engine.logs(ref)

    async def python(self, code: str, **changes: Any) -> tuple[SandboxStatus, str]:
        """Run Python code inside."""
        return await self.run("python3", "-c", code, **changes)

    async def remove_all(self) -> None:
        """Remove every sandbox of this test."""
        for status in await self.engine.list(self.labels):
            await self.engine.remove(status.ref)


def socket_directory(parent: Path) -> Path:
    """A directory as a job has one: readable inside, its parent closed to other users outside."""
    parent.chmod(0o700)
    directory = parent / "job"
    directory.mkdir(mode=0o755)
    return directory
