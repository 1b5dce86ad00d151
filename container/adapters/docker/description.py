"""What an engine can't enforce, read from its own account of itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container.engine.errors import LimitNotEnforceable
from container.engine.sandbox import EngineDescription, Limits

_UNLIMITED_DISK = "the workspace's volume grows until the engine's disk is full"
_FLAGS = {
    "memory_bytes": ("MemoryLimit", "no memory controller"),
    "cpus": ("CpuCfsQuota", "no CPU quota"),
    "pids": ("PidsLimit", "no pids controller"),
}


def describe(endpoint: str, info: Mapping[str, Any], version: Mapping[str, Any]) -> EngineDescription:
    """The engine's `info` and `version` answers as the port's description."""
    podman = is_podman(version)
    return EngineDescription(
        name="podman" if podman else "docker",
        version=str(version.get("Version", "unknown")),
        endpoint=endpoint,
        cpus=int(info.get("NCPU") or 1),
        unenforced=_unenforced(info),
        notes=_notes(info, podman=podman),
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


def _unenforced(info: Mapping[str, Any]) -> dict[str, str]:
    missing = {name: why for name, (flag, why) in _FLAGS.items() if info.get(flag) is False}
    return {"disk_bytes": _UNLIMITED_DISK, **missing}


def _notes(info: Mapping[str, Any], *, podman: bool) -> tuple[str, ...]:
    notes: list[str] = []
    options: list[str] = info.get("SecurityOptions") or []
    security = " ".join(options)
    if "seccomp" not in security:
        notes.append("seccomp is not available: system calls are not filtered")
    if info.get("SwapLimit") is False:
        notes.append("swap is not accounted: a sandbox may use swap beyond its memory limit")
    if podman:
        notes.append("the out-of-memory flag is never set: an OOM kill shows as exit 137 only")
    elif not info.get("LiveRestoreEnabled"):
        notes.append("live-restore is off: restarting the engine ends running jobs")
    if "rootless" in security:
        notes.append("rootless: a container's root is an ordinary user outside")
    return tuple(notes)
