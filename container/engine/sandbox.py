"""What a sandbox is, whichever engine makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path


class NetworkPolicy(StrEnum):
    """What a sandbox may reach beside its own socket. More than nothing comes later."""

    NONE = "none"


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits; `explicit` names those the user asked for.

    An engine that can't hold a default limit says so in `describe()`; one that can't hold an explicit
    limit refuses the launch.
    """

    memory_bytes: int = 2 * 1024**3
    cpus: float = 2.0
    pids: int = 512
    nofile: int = 4096
    tmp_bytes: int = 512 * 1024**2
    shm_bytes: int = 64 * 1024**2
    disk_bytes: int | None = None
    log_bytes: int = 10 * 1024**2
    explicit: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Kit:
    """A worker that can be brought into any image.

    Attributes:
        volume: mounted, read-only, at `/opt/portside`.
        image: the worker image that it was taken from; writable places are laid out as they are there.
    """

    volume: str
    image: str


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """Everything an engine needs to make one sandbox.

    Attributes:
        name: unique; launching the same name twice is launching it once.
        image: reference that `prepare` has seen.
        command: argv; the engine wraps it in a deadline inside the container.
        labels: how the sandbox is found again after a restart.
        socket_dir: the one host directory mounted, read-only, at `/run/portside`; None for none.
        deadline_s: seconds after which the sandbox ends itself, even with nobody watching.
        env: environment of the first process; holds no secret.
        kit: the worker brought along; None when the image has one of its own.
        stop_grace_s: between SIGTERM and SIGKILL.
    """

    name: str
    image: str
    command: tuple[str, ...]
    labels: Mapping[str, str]
    socket_dir: Path | None
    deadline_s: float
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str = "1000:1000"
    network: NetworkPolicy = NetworkPolicy.NONE
    limits: Limits = Limits()
    stop_grace_s: float = 20.0
    kit: Kit | None = None


@dataclass(frozen=True, slots=True)
class WorkerStart:
    """How a worker is started in an image.

    Attributes:
        image: reference that `prepare` has seen.
        python: argv of a Python interpreter that can import the worker.
        env: what the worker needs in its environment.
        kit: the worker that is brought along into an image that has none; None for one that has.
    """

    image: str
    # -P: the working directory is the agent's; nothing is imported from it.
    python: tuple[str, ...] = ("python", "-P")
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    kit: Kit | None = None


@dataclass(frozen=True, slots=True)
class SandboxRef:
    """A sandbox that an engine made: its name and the engine's own id."""

    name: str
    id: str


class SandboxState(StrEnum):
    """Where a sandbox stands."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """One look at a sandbox.

    Attributes:
        oom_killed: the engine's flag, a hint only; see `ran_out_of_memory`.
        error: the engine's own words when it could not start or lost it.
    """

    ref: SandboxRef
    state: SandboxState
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def ran_out_of_memory(self) -> bool:
        """True only when the exit and the engine's flag agree (00-decisions 17)."""
        return self.state is SandboxState.EXITED and self.exit_code == 137 and self.oom_killed


class EventKind(StrEnum):
    """What happened to a sandbox."""

    STARTED = "started"
    EXITED = "exited"
    OOM = "oom"
    REMOVED = "removed"
    RESYNC = "resync"  # from here on all is told, and what came before may be lost: look at everything


@dataclass(frozen=True, slots=True)
class SandboxEvent:
    """A hint that a sandbox changed; the truth is `inspect`."""

    kind: EventKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """What isolation an engine really gives.

    Attributes:
        name: such as `docker`.
        version: the engine's own.
        runtime: what runs its containers, such as `runc`.
        unenforced: default limits it can't hold, each with the reason.
        notes: other facts an operator should know.
    """

    name: str
    version: str
    endpoint: str
    cpus: int
    runtime: str = ""
    unenforced: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
