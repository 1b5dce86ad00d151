"""An engine in memory, for tests of what stands above the port.

It keeps the port's contract (the suite in `tests/contract/test_engine.py` runs over it), and does on request
what real engines do unasked: lose sandboxes, answer nothing, run out of memory, start slowly.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath
from uuid import uuid4

from container.engine.errors import (
    EngineUnavailable,
    ImageMissing,
    LimitNotEnforceable,
    SandboxNotFound,
)
from container.engine.sandbox import (
    EngineDescription,
    EventKind,
    SandboxEvent,
    SandboxRef,
    SandboxSpec,
    SandboxState,
    SandboxStatus,
)
from worker.clock import SystemClock

CUT_NOTE = "[earlier output left out]\n"
_SIGKILL, _SIGTERM = 137, 143
_LIVE = frozenset({SandboxState.RUNNING, SandboxState.PAUSED})

Program = Callable[["FakeSandbox"], Awaitable[int]]


async def until_stopped(_sandbox: FakeSandbox) -> int:
    """The program of a command that has none: runs until somebody ends it."""
    await asyncio.Event().wait()
    return 0


@dataclass(eq=False)
class FakeSandbox:
    """One sandbox: what the engine knows, and what its program may do."""

    spec: SandboxSpec
    status: SandboxStatus
    ignores_sigterm: bool = False
    output: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    task: asyncio.Task[None] | None = None

    def write(self, text: str) -> None:
        """Print, as the first process would."""
        self.output += text.encode()


class FakeEngine:
    """Implements `SandboxEngine`.

    Args:
        programs: what a command does: a coroutine that gets the sandbox and returns its exit code. A command
            without a program runs until it is stopped.
        images: what `prepare` and `launch` find; None for any image.
        now: the clock that stamps starts and ends.
    """

    def __init__(
        self,
        *,
        programs: Mapping[tuple[str, ...], Program] | None = None,
        images: set[str] | None = None,
        cpus: int = 2,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.programs = dict(programs or {})
        self.images = images
        self.launched: list[SandboxSpec] = []
        self.launch_gate = asyncio.Event()
        """Clear it to hold launches between create and start; set it to let them go on."""
        self.launch_gate.set()
        self._cpus = cpus
        self._now = now or SystemClock().now
        self._sandboxes: dict[str, FakeSandbox] = {}
        self._queues: list[asyncio.Queue[SandboxEvent]] = []
        self._failures: dict[str, list[Exception]] = {}
        self._down: EngineUnavailable | None = None

    # --- what a test makes happen ------------------------------------------------------------------------

    def exit(self, name: str, code: int = 0, *, oom: bool = False, error: str = "") -> None:
        """Let a sandbox end."""
        sandbox = self._sandboxes[name]
        if oom:
            self._tell(EventKind.OOM, name)
        self._end(sandbox, code, oom=oom, error=error)

    def oom_child(self, name: str) -> None:
        """A process inside ran out of memory and the sandbox goes on: the flag is set, nothing ends."""
        sandbox = self._sandboxes[name]
        sandbox.status = replace(sandbox.status, oom_killed=True)
        self._tell(EventKind.OOM, name)

    def vanish(self, name: str, *, silently: bool = False) -> None:
        """Somebody removes the sandbox behind our back; `silently` also loses the event."""
        self._forget(self._sandboxes[name], tell=not silently)

    def pause(self, name: str) -> None:
        """Somebody pauses it."""
        self._mark(name, SandboxState.PAUSED)

    def unpause(self, name: str) -> None:
        """And lets it go on."""
        self._mark(name, SandboxState.RUNNING)

    def ignore_sigterm(self, name: str) -> None:
        """From now on only SIGKILL ends it."""
        self._sandboxes[name].ignores_sigterm = True

    def go_down(self, message: str = "the engine does not answer") -> None:
        """From now on every call fails, and events are lost."""
        self._down = EngineUnavailable(message)

    def come_back(self) -> None:
        """Answer again; listeners get one `RESYNC`."""
        self._down = None
        self._tell(EventKind.RESYNC)

    def fail_next(self, call: str, error: Exception) -> None:
        """The next call of this method fails; asked for twice, the next two do."""
        self._failures.setdefault(call, []).append(error)

    def sandbox(self, name: str) -> FakeSandbox:
        """One sandbox by its name, to look into."""
        return self._sandboxes[name]

    @property
    def names(self) -> set[str]:
        """All that exist, in any state."""
        return set(self._sandboxes)

    # --- the port ----------------------------------------------------------------------------------------

    async def describe(self) -> EngineDescription:
        self._answer("describe")
        return EngineDescription(
            name="fake",
            version="1",
            endpoint="memory",
            cpus=self._cpus,
            unenforced={"disk_bytes": "nothing is limited here"},
        )

    async def prepare(self, image: str) -> str:
        self._answer("prepare")
        self._require_image(image)
        return f"id-of-{image}"

    async def launch(self, spec: SandboxSpec) -> SandboxRef:
        self._answer("launch")
        self._require_image(spec.image)
        refused = spec.limits.explicit & {"disk_bytes"}
        if refused or ("cpus" in spec.limits.explicit and spec.limits.cpus > self._cpus):
            raise LimitNotEnforceable(f"{', '.join(sorted(refused)) or 'cpus'} can't be limited here")
        sandbox = self._sandboxes.get(spec.name)
        if sandbox is None:
            self.launched.append(spec)
            ref = SandboxRef(name=spec.name, id=uuid4().hex)
            status = SandboxStatus(ref=ref, state=SandboxState.CREATED, labels=dict(spec.labels))
            sandbox = self._sandboxes[spec.name] = FakeSandbox(spec, status)
        await self.launch_gate.wait()
        if self._sandboxes.get(spec.name) is not sandbox:
            raise SandboxNotFound(f"{spec.name} was removed while it was starting")
        if sandbox.status.state is SandboxState.CREATED:
            self._start(sandbox)
        return sandbox.status.ref

    async def stop(self, ref: SandboxRef, grace_s: float) -> None:
        """Takes no time: a sandbox that ignores SIGTERM is killed at once."""
        self._answer("stop")
        sandbox = self._find(ref)
        if sandbox is not None and sandbox.status.state in _LIVE:
            self._end(sandbox, _SIGKILL if sandbox.ignores_sigterm else _SIGTERM)

    async def inspect(self, ref: SandboxRef) -> SandboxStatus:
        self._answer("inspect")
        sandbox = self._find(ref)
        return sandbox.status if sandbox else SandboxStatus(ref=ref, state=SandboxState.GONE)

    async def list(self, labels: Mapping[str, str]) -> list[SandboxStatus]:
        self._answer("list")
        statuses = [sandbox.status for sandbox in self._sandboxes.values()]
        return [status for status in statuses if labels.items() <= status.labels.items()]

    def events(self) -> AsyncIterator[SandboxEvent]:
        queue: asyncio.Queue[SandboxEvent] = asyncio.Queue()
        self._queues.append(queue)
        queue.put_nowait(SandboxEvent(kind=EventKind.RESYNC))

        async def listen() -> AsyncIterator[SandboxEvent]:
            try:
                while True:
                    yield await queue.get()
            finally:
                self._queues.remove(queue)

        return listen()

    async def logs(self, ref: SandboxRef, *, tail_bytes: int = 65_536) -> str:
        self._answer("logs")
        output = self._require(ref).output
        tail = output[-tail_bytes:].decode(errors="replace")
        return CUT_NOTE + tail if len(output) > tail_bytes else tail

    async def collect(self, ref: SandboxRef, path: str) -> AsyncIterator[bytes]:
        self._answer("collect")
        inside = {name: data for name, data in self._require(ref).files.items() if _is_under(name, path)}
        if not inside:
            raise SandboxNotFound(f"{path} of {ref.name} is not there")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, data in inside.items():
                info = tarfile.TarInfo(str(PurePosixPath(name).relative_to(PurePosixPath(path).parent)))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        yield packed.getvalue()

    async def remove(self, ref: SandboxRef) -> None:
        self._answer("remove")
        sandbox = self._find(ref)
        if sandbox is not None:
            self._forget(sandbox)

    async def close(self) -> None:
        for sandbox in self._sandboxes.values():
            if sandbox.task is not None:
                sandbox.task.cancel()

    # --- inside ------------------------------------------------------------------------------------------

    def _answer(self, call: str) -> None:
        if self._down is not None:
            raise self._down
        if waiting := self._failures.get(call):
            raise waiting.pop(0)

    def _require_image(self, image: str) -> None:
        if self.images is not None and image not in self.images:
            raise ImageMissing(f"the image {image} is not on this engine")

    def _find(self, ref: SandboxRef) -> FakeSandbox | None:
        sandbox = self._sandboxes.get(ref.name)
        return sandbox if sandbox is not None and sandbox.status.ref.id == ref.id else None

    def _require(self, ref: SandboxRef) -> FakeSandbox:
        sandbox = self._find(ref)
        if sandbox is None:
            raise SandboxNotFound(f"{ref.name} is not there any more")
        return sandbox

    def _mark(self, name: str, state: SandboxState) -> None:
        sandbox = self._sandboxes[name]
        sandbox.status = replace(sandbox.status, state=state)

    def _start(self, sandbox: FakeSandbox) -> None:
        sandbox.status = replace(sandbox.status, state=SandboxState.RUNNING, started_at=self._now())
        self._tell(EventKind.STARTED, sandbox.spec.name)
        program = self.programs.get(sandbox.spec.command, until_stopped)

        async def run() -> None:
            try:
                async with asyncio.timeout(sandbox.spec.deadline_s):
                    code = await program(sandbox)
            except TimeoutError:
                code = 124
            sandbox.task = None
            self._end(sandbox, code)

        sandbox.task = asyncio.create_task(run())

    def _end(self, sandbox: FakeSandbox, code: int, *, oom: bool = False, error: str = "") -> None:
        if sandbox.status.state not in _LIVE:
            return
        if sandbox.task is not None:
            sandbox.task.cancel()
        sandbox.status = replace(
            sandbox.status,
            state=SandboxState.EXITED,
            exit_code=code,
            oom_killed=oom or sandbox.status.oom_killed,
            error=error,
            finished_at=self._now(),
        )
        self._tell(EventKind.EXITED, sandbox.spec.name)

    def _forget(self, sandbox: FakeSandbox, *, tell: bool = True) -> None:
        if sandbox.task is not None:
            sandbox.task.cancel()
        del self._sandboxes[sandbox.spec.name]
        if tell:
            self._tell(EventKind.REMOVED, sandbox.spec.name)

    def _tell(self, kind: EventKind, name: str = "") -> None:
        if self._down is None:
            for queue in self._queues:
                queue.put_nowait(SandboxEvent(kind, name))


def _is_under(name: str, path: str) -> bool:
    return PurePosixPath(name).is_relative_to(path)
