"""A `SandboxSpec` as the engine's create call: the default isolation, in one place. Pure but for one file.

Source: 06-containers.md "Default isolation"; measured on Docker 20.10 and 26.1 with runc.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from docker.types import HostConfig, LogConfig, Mount, Ulimit

from container.adapters.docker.description import GVISOR
from container.adapters.docker.status import LABEL
from container.engine.sandbox import Kit, Limits, SandboxSpec

SOCKET_DIR = "/run/portside"
WORKSPACE = "/workspace"
STATE = "/state"
VOLUMES = (WORKSPACE, STATE)
KIT = "/opt/portside"
_LOG_FILES = 2
# Of all processes of one user: many sandboxes' worth.
_PODMAN_NPROC = 16_384
_GVISOR_PIDS = 512
_PROFILE = Path(__file__).resolve().parents[2] / "seccomp.json"


def create_arguments(spec: SandboxSpec) -> dict[str, Any]:
    """Arguments of the create call, without `host_config`.

    The image's own entry point is replaced by a deadline that holds with nobody watching.
    """
    timeout = f"{KIT}/bin/timeout" if spec.kit else "timeout"
    return {
        "image": spec.image,
        "name": spec.name,
        "entrypoint": [timeout, "-k", f"{spec.stop_grace_s:g}", f"{spec.deadline_s:g}"],
        "command": list(spec.command),
        "user": spec.user,
        "environment": dict(spec.env),
        "labels": {**spec.labels, LABEL: spec.name},
        "working_dir": WORKSPACE,
        "stop_signal": "SIGTERM",
        "healthcheck": {"test": ["NONE"]},
        # The user's ~/.docker/config.json must not put proxies, or their passwords, into a sealed box.
        "use_config_proxy": False,
    }


def host_config(
    spec: SandboxSpec,
    *,
    cpus: float,
    api_version: str,
    podman: bool = False,
    runtime: str = "",
    laid_out: bool = False,
) -> HostConfig:
    """Everything that keeps the sandbox in: namespaces, capabilities, system calls, limits, mounts.

    With `laid_out` its volumes are there already, under `volume_name`.
    """
    limits = spec.limits
    # gVisor's own threads count among the sandbox's, and it falls when it can make none.
    pids = max(limits.pids, _GVISOR_PIDS) if runtime == GVISOR else limits.pids
    return HostConfig(
        version=api_version,
        runtime=runtime or None,
        network_mode="none",
        ipc_mode="private",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={_PROFILE if podman else seccomp_profile()}"],
        init=True,
        pids_limit=pids,
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        nano_cpus=round(cpus * 1e9),
        ulimits=_ulimits(limits, podman=podman),
        tmpfs=_tmpfs(limits, podman=podman),
        shm_size=limits.shm_bytes,
        mounts=_mounts(spec, laid_out=laid_out),
        log_config=_log_config(limits),
        restart_policy={"Name": "no"},
    )


def _tmpfs(limits: Limits, *, podman: bool) -> dict[str, str]:
    # exec: compilers and test runners start what they have just built there
    places = {"/tmp": f"size={limits.tmp_bytes},mode=1777,nosuid,nodev,exec"}  # noqa: S108 -- inside the box
    if podman:
        # Left to itself it lays a writable one over this, without a bound.
        places["/var/tmp"] = "ro,size=4k,mode=0555,nosuid,nodev,noexec"  # noqa: S108 -- inside the box
    return places


def _ulimits(limits: Limits, *, podman: bool) -> list[Ulimit]:
    ulimits = [
        Ulimit(name="nofile", soft=limits.nofile, hard=limits.nofile),
        Ulimit(name="core", soft=0, hard=0),
        Ulimit(name="msgqueue", soft=0, hard=0),  # else /dev/mqueue is one more writable place
    ]
    if podman:
        # Left to itself it raises this one, which not every host lets it do. The bound is `pids_limit`.
        ulimits.append(Ulimit(name="nproc", soft=_PODMAN_NPROC, hard=_PODMAN_NPROC))
    return ulimits


@cache
def seccomp_profile() -> str:
    """The profile's text. Docker takes it inline; Podman takes the name of a file that it can read."""
    return _PROFILE.read_text(encoding="utf-8")


def _mounts(spec: SandboxSpec, *, laid_out: bool) -> list[Mount]:
    # A volume that was laid out keeps what it has: this image's own directory would say whose it is.
    mounts = _volumes(spec, named=laid_out, no_copy=laid_out)
    if spec.socket_dir is not None:
        # The directory, never the socket: an orchestrator that restarts makes a new socket in it.
        mounts.append(Mount(target=SOCKET_DIR, source=str(spec.socket_dir), type="bind", read_only=True))
    if spec.kit is not None:
        mounts.append(Mount(target=KIT, source=spec.kit.volume, type="volume", read_only=True, no_copy=True))
    return mounts


def _volumes(spec: SandboxSpec, *, named: bool, no_copy: bool = False) -> list[Mount]:
    """Those without a name are the engine's to make; the label finds all of them when the container goes."""
    labels = volume_labels(spec)
    sources = {path: volume_name(spec.name, path) if named else None for path in VOLUMES}
    return [
        Mount(target=path, source=source, labels=labels, no_copy=no_copy) for path, source in sources.items()
    ]


def layout_arguments(spec: SandboxSpec, kit: Kit, *, api_version: str) -> dict[str, Any]:
    """Create call of a container, never started, that lays out the volumes for an image with no such places.

    A new volume takes owner and content from the image's directory of its name: here, the worker image's.
    """
    mounts = _volumes(spec, named=True)
    return {
        "image": kit.image,
        "labels": {**spec.labels, f"{LABEL}.layout": spec.name},
        "use_config_proxy": False,
        "host_config": HostConfig(version=api_version, network_mode="none", mounts=mounts),
    }


def volume_name(sandbox: str, path: str) -> str:
    """What the volume at `path` is called when it is made before its sandbox."""
    return f"{sandbox}{path.replace('/', '-')}"


def volume_labels(spec: SandboxSpec) -> dict[str, str]:
    """What finds a sandbox's volumes."""
    return {**spec.labels, LABEL: spec.name}


def _log_config(limits: Limits) -> LogConfig:
    per_file = max(limits.log_bytes // _LOG_FILES, 4096)
    return LogConfig(
        type=LogConfig.types.JSON, config={"max-size": str(per_file), "max-file": str(_LOG_FILES)}
    )
