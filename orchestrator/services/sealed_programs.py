"""The worker's own programs over hostile files, each run in a container without network, made for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync

from container.engine.errors import EngineError
from container.engine.port import SandboxEngine
from container.engine.sandbox import Limits, SandboxRef, SandboxSpec, SandboxState, WorkerStart
from orchestrator.ports.blobs import BlobTooLarge
from orchestrator.services.left_files import only_file

GIVEN = "/run/portside"
OUT = "/workspace"
_DEADLINE_S = 600.0
_POLL_S = 0.1
_SAID_BYTES = 64 * 1024 * 1024
_TAR_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Program:
    """One run.

    Attributes:
        module: of the worker's image.
        arguments: before `IN OUT`.
        given: the one directory that it sees, read-only; other users of the box must be able to read it.
    """

    name: str
    module: str
    labels: Mapping[str, str]
    given: Path
    arguments: tuple[str, ...] = ()


class SealedPrograms:
    """Runs programs on one engine.

    Args:
        start_in: answers how Python with the worker is started in an image; empty names the default one.
    """

    def __init__(self, engine: SandboxEngine, start_in: Callable[[str], Awaitable[WorkerStart]]) -> None:
        self._engine = engine
        self._start_in = start_in

    @asynccontextmanager
    async def run(self, program: Program) -> AsyncGenerator[tuple[SandboxRef, Any]]:
        """A sandbox whose program has ended well, and the JSON that it printed; removed at the end.

        Raises:
            EngineError: the engine refused, or the program failed; its last line says why.
        """
        start = await self._start_in("")
        spec = SandboxSpec(
            name=program.name,
            image=start.image,
            command=command_of(start, program.module, *program.arguments),
            env=start.env,
            kit=start.kit,
            labels=program.labels,
            socket_dir=program.given,
            deadline_s=_DEADLINE_S,
            limits=Limits(log_bytes=_SAID_BYTES),
            stop_grace_s=1.0,
        )
        ref = await self._engine.launch(spec)
        try:
            yield ref, await self._result(ref, program)
        finally:
            with suppress(EngineError):  # found again by its labels
                await self._engine.remove(ref)

    async def fetch(self, ref: SandboxRef, name: str, to: Path, *, most: int) -> None:
        """A file that the program made.

        Raises:
            EngineError: it made none.
            BlobTooLarge: it has more than `most` bytes.
            OSError: it can't be written.
        """
        packed = to.with_name(f"{to.name}.packed")
        await write(self._engine.collect(ref, f"{OUT}/{name}"), packed, most=most + _TAR_BYTES)
        if not await run_sync(_unpack_only, packed, to):
            raise EngineError(f"{ref.name} made no {name}")
        await run_sync(packed.unlink)

    async def _result(self, ref: SandboxRef, program: Program) -> Any:
        status = await self._engine.inspect(ref)
        while status.state not in {SandboxState.EXITED, SandboxState.GONE}:
            await asyncio.sleep(_POLL_S)
            status = await self._engine.inspect(ref)
        gone = status.state is SandboxState.GONE
        printed = "" if gone else await self._engine.logs(ref, tail_bytes=_SAID_BYTES)
        if status.exit_code != 0:
            last = printed.strip().splitlines()[-1:] or [f"exit code {status.exit_code}"]
            raise EngineError(f"{program.module} failed: {last[0][:500]}")
        return json.loads(printed)


def command_of(start: WorkerStart, module: str, *arguments: str) -> tuple[str, ...]:
    """How a program is started in its container."""
    return (*start.python, "-m", module, *arguments, GIVEN, OUT)


async def write(pieces: AsyncIterator[bytes], to: Path, *, most: int | None = None) -> None:
    """Write a stream to a file that every user may read.

    Raises:
        BlobTooLarge: there are more than `most` bytes.
        OSError: it can't be written.
    """
    size = 0
    with await run_sync(to.open, "wb") as file:
        await run_sync(to.chmod, 0o644)
        async for piece in pieces:
            size += len(piece)
            if most is not None and size > most:
                raise BlobTooLarge(most)
            await run_sync(file.write, piece)


def _unpack_only(packed: Path, to: Path) -> bool:
    with packed.open("rb") as tar, to.open("wb") as out:
        return only_file(tar, out)
