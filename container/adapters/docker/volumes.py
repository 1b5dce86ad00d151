"""The volumes of sandboxes: made where the engine would make others, and removed with what bounds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from docker.errors import APIError

from container.adapters.docker.api import DockerApi, Json
from container.adapters.docker.bounded_disks import BoundedDisks
from container.adapters.docker.isolation import VOLUMES, layout_arguments, volume_labels, volume_name
from container.adapters.docker.status import LABEL
from container.engine.sandbox import EngineDescription, SandboxSpec

# noinit_itable: the kernel need not write the tables of a million files that nobody makes
_DISK_OPTIONS = "nosuid,nodev,noinit_itable"
_ABANDONED = timedelta(minutes=10)


class Volumes:
    """Makes and removes sandboxes' volumes. All methods block.

    Args:
        disks: bounds them where it can; None leaves them to the engine.
    """

    def __init__(self, disks: BoundedDisks | None) -> None:
        self._disks = disks

    def lay_out(self, api: DockerApi, spec: SandboxSpec, engine: EngineDescription) -> bool:
        """Make them where the engine would not make them as they have to be; whether it did."""
        if self._disks is not None and "disk_bytes" not in engine.unenforced:
            size = self._disks.size
            if spec.limits.disk_bytes is not None:
                size = replace(size, bytes=spec.limits.disk_bytes)
            for path in VOLUMES:
                name = volume_name(spec.name, path)
                options = {"type": "ext4", "device": str(self._disks.make(name, size)), "o": _DISK_OPTIONS}
                api.create_volume(name, driver="local", driver_opts=options, labels=volume_labels(spec))
            return True
        if spec.kit is not None:
            made = api.create_container(**layout_arguments(spec, spec.kit, api_version=api.api_version))
            api.remove_container(made["Id"], v=False, force=True)
            return True
        return False

    def remove(self, api: DockerApi, sandbox: str) -> None:
        """Remove those of one sandbox, and what lies under them."""
        answer = api.volumes(filters={"label": f"{LABEL}={sandbox}"})
        volumes: list[Json] = answer.get("Volumes") or []
        for volume in volumes:
            try:
                api.remove_volume(volume["Name"])
            except APIError:
                continue  # in use, or gone: the next removal of this sandbox looks again
        if self._disks is not None:
            for path in VOLUMES:
                self._disks.release(volume_name(sandbox, path))

    def sweep(self, api: DockerApi) -> None:
        """Remove what belongs to no sandbox: a process was killed while it launched one."""
        rows = api.containers(all=True, filters={"label": [LABEL]})
        sandboxes = {str(row["Labels"][LABEL]) for row in rows}
        volumes: list[Json] = api.volumes(filters={"label": LABEL}).get("Volumes") or []
        now = datetime.fromisoformat(str(api.info()["SystemTime"]))  # the clock that wrote their times
        for name in abandoned(volumes, sandboxes, now):
            with suppress(APIError):  # in use after all, or gone
                api.remove_volume(name)
        if self._disks is not None and not self._disks.obstacle():
            self._disks.sweep({volume_name(name, path) for name in sandboxes for path in VOLUMES})


def abandoned(volumes: Iterable[Json], sandboxes: Collection[str], now: datetime) -> list[str]:
    """The names of volumes that are of no sandbox, and too old to be of one that is just being made."""
    return [
        str(volume["Name"])
        for volume in volumes
        if volume["Labels"][LABEL] not in sandboxes
        and now - datetime.fromisoformat(str(volume["CreatedAt"])) > _ABANDONED
    ]
