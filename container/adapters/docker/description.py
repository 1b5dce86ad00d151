"""What an engine can't enforce, read from its own account of itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container.adapters.docker.bounded_disks import BoundedDisks
from container.engine.errors import LimitNotEnforceable, RuntimeUnknown
from container.engine.sandbox import EngineDescription, Limits

GVISOR = "runsc"
_UNLIMITED_DISK = "the workspace's volume grows until the engine's disk is full"
_FLAGS = {
    "memory_bytes": ("MemoryLimit", "no memory controller"),
    "cpus": ("CpuCfsQuota", "no CPU quota"),
    "pids": ("PidsLimit", "no pids controller"),
}


def describe(
    endpoint: str,
    info: Mapping[str, Any],
    version: Mapping[str, Any],
    *,
    runtime: str = "",
    disks: BoundedDisks | None = None,
) -> EngineDescription:
    """The engine's `info` and `version` answers as the port's description.

    Sandboxes are to run in `runtime`, or for an empty one in the engine's default; `disks` bounds theirs.

    Raises:
        RuntimeUnknown: the engine does not have that runtime.
    """
    podman = is_podman(version)
    known: Mapping[str, Any] = info.get("Runtimes") or {}
    if runtime and runtime not in known:
        raise RuntimeUnknown(
            f"the engine at {endpoint} does not know the runtime {runtime}; it knows "
            f"{', '.join(sorted(known)) or 'none by name'}. Add it to the engine (docs/how-to/gvisor.md), or "
            "unset PORTSIDE_SANDBOX_RUNTIME"
        )
    return EngineDescription(
        name="podman" if podman else "docker",
        version=str(version.get("Version", "unknown")),
        endpoint=endpoint,
        cpus=int(info.get("NCPU") or 1),
        runtime=runtime or str(info.get("DefaultRuntime") or ""),
        unenforced=_unenforced(info, disks, podman=podman),
        notes=_notes(info, podman=podman, runtime=runtime),
    )


def is_podman(version: Mapping[str, Any]) -> bool:
    """Podman names itself among its components."""
    components: list[Mapping[str, Any]] = version.get("Components") or []
    return any("podman" in str(part.get("Name", "")).lower() for part in components)


def allowed_cpus(limits: Limits, description: EngineDescription) -> float:
    """CPUs to give: the wish, bounded by what the engine has.

    Raises:
        LimitNotEnforceable: an explicit limit that this engine can't hold.
    """
    for name in sorted(limits.explicit & description.unenforced.keys()):
        raise LimitNotEnforceable(
            f"{name} can't be limited on this engine ({description.name} {description.version}): "
            f"{description.unenforced[name]}. Leave the limit out, or use an engine that has it."
        )
    if "cpus" in limits.explicit and limits.cpus > description.cpus:
        raise LimitNotEnforceable(
            f"cpus: {limits.cpus:g} were asked for and the engine has {description.cpus}; ask for fewer."
        )
    return min(limits.cpus, float(description.cpus))


def _unenforced(info: Mapping[str, Any], disks: BoundedDisks | None, *, podman: bool) -> dict[str, str]:
    missing = {name: why for name, (flag, why) in _FLAGS.items() if info.get(flag) is False}
    if podman and _rootless(info):
        missing["nofile"] = "rootless Podman takes this limit on its command line only"
        if str(info.get("CgroupVersion")) == "1":
            # It says of the machine's controllers that they are there, and leaves them alone.
            why = "rootless Podman holds no limits on control groups of version 1"
            missing.update(dict.fromkeys(_FLAGS, why))
    if disks is None:
        return {"disk_bytes": _UNLIMITED_DISK, **missing}
    obstacle = "bounded disks need an engine that runs as root" if _rootless(info) else disks.obstacle()
    return {"disk_bytes": f"{_UNLIMITED_DISK} ({obstacle})", **missing} if obstacle else missing


def _rootless(info: Mapping[str, Any]) -> bool:
    options: list[str] = info.get("SecurityOptions") or []
    return "rootless" in " ".join(options) or info.get("Rootless") is True  # Docker says it so, Podman so


def _notes(info: Mapping[str, Any], *, podman: bool, runtime: str) -> tuple[str, ...]:
    notes: list[str] = []
    options: list[str] = info.get("SecurityOptions") or []
    security = " ".join(options)
    if runtime == GVISOR:
        notes.append(
            "gVisor: a kernel of its own answers system calls; when a command runs out of memory the job does"
        )
    elif "seccomp" not in security:
        notes.append("seccomp is not available: system calls are not filtered")
    if info.get("SwapLimit") is False:
        notes.append("swap is not accounted: a sandbox may use swap beyond its memory limit")
    if podman:
        notes.append("the out-of-memory flag is never set: an OOM kill shows as exit 137 only")
    elif not info.get("LiveRestoreEnabled"):
        notes.append("live-restore is off: restarting the engine ends running jobs")
    if _rootless(info):
        notes.append("rootless: a container's root is an ordinary user outside")
    return tuple(notes)
