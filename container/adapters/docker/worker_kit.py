"""A worker that travels: a volume filled once from the worker image, and mounted into images that have none.

The volume's name says what is in it. The container that filled it stays, ended: while it is there the engine
does not let the volume go, its name keeps two from filling at once, and its exit code says that it is whole.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from http import HTTPStatus
from pathlib import Path

from docker.errors import APIError, NotFound
from docker.types import HostConfig, Mount

from container.adapters.docker.api import DockerApi, Json
from container.adapters.docker.connection import Connection
from container.adapters.docker.faults import words
from container.adapters.docker.inspect import inspect
from container.adapters.docker.output import read_tail
from container.adapters.docker.pull import find_image
from container.engine.errors import EngineError, ImageMissing

LABEL = "portside.kit"
_VOLUME = "portside-kit-"
_FILL = "/fill"
_FILL_S = 180.0
_POLL_S = 0.1
_MEMORY_BYTES = 1024**3
_LAST_WORDS = 2000
_SAID_WHY = 1


class WorkerKit:
    """Makes and finds the volumes on one engine; any number of orchestrators may do so at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._script = Path(__file__).with_name("kit_filling.py").read_text(encoding="utf-8")

    async def ensure(self, worker_image: str) -> str:
        """The name of the volume with this image's worker, filled if it is not there.

        Raises:
            ImageMissing: the worker image is not there.
            EngineError: it can't be filled; the message says why.
        """
        image_id = await self._connection.quick(lambda api: find_image(api, worker_image))
        if image_id is None:
            raise ImageMissing(
                f"the image {worker_image} is not on this engine. Build it: portside image build"
            )
        name = self._name(image_id)
        try:
            async with asyncio.timeout(_FILL_S):
                while not await self._filled(name):
                    await self._connection.slow(partial(self._begin, name=name, image_id=image_id))
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise EngineError(f"the volume {name} was not filled within {_FILL_S:g} s; try again") from error
        return name

    async def remove_stale(self, worker_image: str) -> list[str]:
        """Remove the volumes of other worker images but those that a job still uses; answers their names."""
        image_id = (
            await self._connection.quick(lambda api: find_image(api, worker_image)) if worker_image else None
        )
        kept = self._name(image_id) if image_id else ""
        return await self._connection.slow(partial(_remove_others, kept=kept))

    def _name(self, image_id: str) -> str:
        return _VOLUME + hashlib.sha256(f"{image_id}\n{self._script}".encode()).hexdigest()[:16]

    async def _filled(self, name: str) -> bool:
        """Whether its container has ended well; any other end of it removes it.

        Raises:
            EngineError: it said why it can't be filled.
        """
        try:
            seen = await self._connection.quick(partial(inspect, container=name))
        except NotFound:
            return False
        if seen["State"]["Status"] != "exited":
            return False
        code = int(seen["State"]["ExitCode"])
        if code == 0:
            return True
        said = await self._last_words(name) if code == _SAID_WHY else ""
        await self._connection.slow(partial(_remove_container, container=str(seen["Id"])))
        if code != _SAID_WHY:
            return False  # it was cut off: begin again
        raise EngineError(f"no worker can be taken from the worker image: {said}")

    async def _last_words(self, name: str) -> str:
        try:
            said = await self._connection.slow(partial(read_tail, container=name, tail_bytes=_LAST_WORDS))
        except APIError:  # another, who waits for it too, is removing it
            said = ""
        return said.strip() or "it said nothing"

    def _begin(self, api: DockerApi, name: str, image_id: str) -> None:
        """Create and start what fills it; one that is there already is somebody's who does the same."""
        mount = Mount(target=f"{_FILL}/opt/portside", source=name, type="volume", labels={LABEL: name})
        try:
            api.create_container(
                image_id,
                name=name,
                entrypoint=["python3", "-I", "-c"],
                command=[self._script],
                user="0:0",
                labels={LABEL: name},
                use_config_proxy=False,
                host_config=HostConfig(
                    version=api.api_version,
                    network_mode="none",
                    read_only=True,
                    cap_drop=["ALL"],
                    cap_add=["SYS_CHROOT"],  # to index and to try the volume as a root of its own
                    security_opt=["no-new-privileges:true"],
                    init=True,
                    mem_limit=_MEMORY_BYTES,
                    tmpfs={f"{_FILL}/dev": "size=64k"},
                    mounts=[mount],
                ),
            )
        except APIError as error:
            if error.status_code != HTTPStatus.CONFLICT and "already in use" not in words(error):
                raise EngineError(f"{name} could not be created: {words(error)}") from error
        try:
            api.start(name)  # again is nothing: the one that runs, runs on
        except APIError as error:
            if error.status_code in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                return  # it failed, and another who waits for it is removing it
            raise EngineError(f"{name} could not be started: {words(error)}") from error


def _remove_others(api: DockerApi, kept: str) -> list[str]:
    for row in api.containers(all=True, filters={"label": [LABEL], "status": ["exited", "created", "dead"]}):
        name = str(row["Labels"][LABEL])
        if name != kept:
            _remove_container(api, name)
    removed: list[str] = []
    volumes: list[Json] = api.volumes(filters={"label": LABEL}).get("Volumes") or []
    for name in (str(volume["Name"]) for volume in volumes):
        if name == kept:
            continue
        try:
            api.remove_volume(name)
        except APIError:
            continue  # a job uses it; it goes the next time
        removed.append(name)
    return sorted(removed)


def _remove_container(api: DockerApi, container: str) -> None:
    try:
        api.remove_container(container, v=False, force=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != HTTPStatus.CONFLICT:  # another, who waits for it too, is removing it
            raise EngineError(f"{container} could not be removed: {words(error)}") from error
