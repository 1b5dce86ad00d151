"""Sandboxes on Docker, or on Podman through its Docker-compatible socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from docker.errors import APIError, NotFound

from container.adapters.docker.api import DockerApi
from container.adapters.docker.bounded_disks import BoundedDisks
from container.adapters.docker.connection import QUICK_S, SLOW_S, Connection
from container.adapters.docker.description import allowed_cpus, describe
from container.adapters.docker.events import EventFeed
from container.adapters.docker.faults import words
from container.adapters.docker.inspect import inspect
from container.adapters.docker.isolation import create_arguments, host_config
from container.adapters.docker.output import CHUNK_BYTES, open_archive, read_tail
from container.adapters.docker.pull import find_image, pull_image
from container.adapters.docker.status import LABEL, listed_status, status_of
from container.adapters.docker.volumes import Volumes
from container.engine.errors import (
    EngineError,
    EngineUnavailable,
    ImageMissing,
    LaunchFailed,
    SandboxNotFound,
)
from container.engine.sandbox import (
    EngineDescription,
    SandboxEvent,
    SandboxRef,
    SandboxSpec,
    SandboxState,
    SandboxStatus,
)

_PULL_S = 600.0
_KILL_S = 15.0
_POLL_S = 0.1
_SAID_S = 60.0
_OWN_IMAGES = "portside-"
_NAME_TAKEN = "already in use"  # Podman says it with status 500
_LIVE = frozenset({SandboxState.RUNNING, SandboxState.PAUSED})


class DockerEngine:
    """Implements `SandboxEngine` over one local socket.

    Calls that look take at most `quick_s` seconds, calls that make or remove at most `slow_s`. One thread
    reads events for all sandboxes; no thread waits for a job.

    Args:
        runtime: what sandboxes run in; empty for the engine's default.
        disks: bounds the disks of sandboxes where it can; None leaves them to the engine.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        quick_s: float = QUICK_S,
        slow_s: float = SLOW_S,
        runtime: str = "",
        disks: BoundedDisks | None = None,
    ) -> None:
        self._runtime = runtime
        self._disks = disks
        self._volumes = Volumes(disks)
        self._connection = Connection(endpoint, quick_s=quick_s, slow_s=slow_s)
        self._feed = EventFeed(endpoint, quick_s)
        self._said: tuple[float, EngineDescription] | None = None

    @property
    def connection(self) -> Connection:
        """The socket, for what belongs to this engine only: building images."""
        return self._connection

    async def describe(self) -> EngineDescription:
        """What this engine isolates and limits, asked anew each time.

        Raises:
            RuntimeUnknown: it does not have the runtime that sandboxes are to run in.
        """
        said = await self._connection.quick(
            lambda api: describe(
                self._connection.endpoint,
                api.info(),
                api.version(),
                runtime=self._runtime,
                disks=self._disks,
            )
        )
        self._said = (time.monotonic(), said)
        return said

    async def prepare(self, image: str) -> str:
        """The image's id; pulls it if it is not there, unless it is one that only `image build` makes."""
        found = await self._connection.quick(partial(find_image, image=image))
        if found is not None:
            return found
        if image.removeprefix("localhost/").startswith(_OWN_IMAGES):
            raise ImageMissing(f"the image {image} is not on this engine. Build it: portside image build")
        await self._connection.slow(partial(pull_image, image=image), deadline_s=_PULL_S)
        found = await self._connection.quick(partial(find_image, image=image))
        if found is None:
            raise ImageMissing(f"the image {image} was pulled and is not on this engine")
        return found

    async def launch(self, spec: SandboxSpec) -> SandboxRef:
        """Create and start.

        The first look is quick, so an engine that hangs is found out in `quick_s`, not in `slow_s`.
        """
        status = await self._existing(spec) or await self._create_or_find(spec)
        ref = status.ref
        if status.state is not SandboxState.CREATED:
            return ref  # it runs, or has run: launching twice is launching once
        try:
            await self._connection.slow(lambda api: api.start(ref.id))
        except APIError as error:
            await self.remove(ref)
            raise LaunchFailed(f"{spec.name} could not be started: {words(error)}") from error
        return ref

    async def stop(self, ref: SandboxRef, grace_s: float) -> None:
        """SIGTERM, wait, SIGKILL.

        The waiting is done here and not by the engine's own stop call: that would hold a thread for each
        sandbox, and twenty stops would take more than one grace period.
        """
        await self._signal(ref, "SIGTERM")
        if await self._ended(ref, grace_s):
            return
        await self._signal(ref, "SIGKILL")
        if not await self._ended(ref, _KILL_S):
            raise EngineError(f"{ref.name} still runs {_KILL_S:g} s after SIGKILL; look at the engine's log")

    async def inspect(self, ref: SandboxRef) -> SandboxStatus:
        """Look at it by its id."""
        try:
            return status_of(await self._connection.quick(partial(inspect, container=ref.id)))
        except NotFound:
            return SandboxStatus(ref=ref, state=SandboxState.GONE)

    async def list(self, labels: Mapping[str, str]) -> list[SandboxStatus]:
        """All of ours with these labels, also those that were created and never started."""
        wanted = [LABEL, *(f"{key}={value}" for key, value in labels.items())]
        rows: list[dict[str, Any]] = await self._connection.quick(
            lambda api: api.containers(all=True, filters={"label": wanted})
        )
        looks = [self._listed(row) for row in rows]
        return [status for status in await asyncio.gather(*looks) if status.state is not SandboxState.GONE]

    def events(self) -> AsyncIterator[SandboxEvent]:
        """Listen from now on."""
        return self._feed.listen()

    async def logs(self, ref: SandboxRef, *, tail_bytes: int = 65_536) -> str:
        """The last bytes of both output streams; a first line says so when something was left out."""
        try:
            return await self._connection.slow(partial(read_tail, container=ref.id, tail_bytes=tail_bytes))
        except NotFound as error:
            raise SandboxNotFound(f"{ref.name} is not there any more") from error

    async def collect(self, ref: SandboxRef, path: str) -> AsyncIterator[bytes]:
        """A tar stream of `path`; each piece has a deadline, the caller bounds the whole."""
        connection = self._connection
        try:
            response = await connection.slow(partial(open_archive, container=ref.id, path=path))
        except NotFound as error:
            raise SandboxNotFound(f"{path} of {ref.name} is not there") from error
        try:
            pieces = response.iter_content(CHUNK_BYTES)
            while piece := await connection.slow(lambda _api: next(pieces, b"")):
                yield piece
        finally:
            response.close()

    async def remove(self, ref: SandboxRef) -> None:
        """Remove it and its volumes, also those that somebody else's `rm` left behind.

        A refusal is tried again for a while: another removal may be under way, or it is just ending.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _KILL_S
        while True:
            try:
                await self._connection.slow(lambda api: api.remove_container(ref.id, v=True, force=True))
            except NotFound:
                break  # removing twice is fine
            except APIError as error:
                if loop.time() > deadline:
                    raise EngineError(f"{ref.name} could not be removed: {words(error)}") from error
                await asyncio.sleep(_POLL_S)
            else:
                break
        await self._connection.slow(partial(self._volumes.remove, sandbox=ref.name))

    async def sweep(self) -> None:
        """Remove volumes and disks that belong to no sandbox: a process was killed while it launched one."""
        await self._connection.slow(self._volumes.sweep)

    async def close(self) -> None:
        """End the event thread, the pools and their connections."""
        await asyncio.to_thread(self._feed.close)
        await self._connection.close()

    async def _listed(self, row: Mapping[str, Any]) -> SandboxStatus:
        """A row with what a look adds: how it ended.

        An engine says nothing of a sandbox while it takes its disks away, which can be minutes for gigabytes.
        That one still runs then, for all that is known; the others are not to wait for it.
        """
        listed = listed_status(row)
        if row.get("State") == SandboxState.RUNNING:
            return listed
        try:
            return await self.inspect(listed.ref)
        except EngineUnavailable:
            return listed

    async def _described(self) -> EngineDescription:
        """What it said of itself a moment ago, or says now: Podman takes seconds to say it."""
        if self._said is not None and time.monotonic() < self._said[0] + _SAID_S:
            return self._said[1]
        return await self.describe()

    async def _create_or_find(self, spec: SandboxSpec) -> SandboxStatus:
        """Make it, or find the one of that name.

        A name is taken a moment before its container can be seen, and free a moment after it has gone.
        """
        engine = await self._described()
        cpus = allowed_cpus(spec.limits, engine)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connection.slow_s
        while loop.time() < deadline:
            status = await self._create(spec, cpus, engine) or await self._existing(spec)
            if status is not None:
                return status
            await asyncio.sleep(_POLL_S)
        raise LaunchFailed(f"the name {spec.name} is taken by a container that can't be seen")

    async def _create(
        self, spec: SandboxSpec, cpus: float, engine: EngineDescription
    ) -> SandboxStatus | None:
        """Create it; None when the name is taken."""

        def create(api: DockerApi) -> str:
            config = host_config(
                spec,
                cpus=cpus,
                api_version=api.api_version,
                podman=engine.name == "podman",
                runtime=self._runtime,
                laid_out=self._volumes.lay_out(api, spec, engine),
            )
            return str(api.create_container(**create_arguments(spec), host_config=config)["Id"])

        try:
            made = await self._connection.slow(create)
        except NotFound as error:
            await self._connection.slow(partial(self._volumes.remove, sandbox=spec.name))
            raise ImageMissing(
                f"the image {spec.image} is not on this engine: {words(error)}. Type: portside image build"
            ) from error
        except APIError as error:
            if error.status_code == HTTPStatus.CONFLICT or _NAME_TAKEN in words(error):
                return None
            await self._connection.slow(partial(self._volumes.remove, sandbox=spec.name))
            raise LaunchFailed(f"{spec.name} could not be created: {words(error)}") from error
        except EngineError:  # no room for the second of its disks
            await self._connection.slow(partial(self._volumes.remove, sandbox=spec.name))
            raise
        return SandboxStatus(ref=SandboxRef(name=spec.name, id=made), state=SandboxState.CREATED)

    async def _existing(self, spec: SandboxSpec) -> SandboxStatus | None:
        """The sandbox that an earlier launch of the same name made; None when it can't be seen."""
        try:
            found = status_of(await self._connection.quick(partial(inspect, container=spec.name)))
        except NotFound:
            return None
        expected = {**spec.labels, LABEL: spec.name}
        if any(found.labels.get(key) != value for key, value in expected.items()):
            raise LaunchFailed(
                f"the name {spec.name} is taken by a container that is not this job's; remove it or rename it"
            )
        return found

    async def _signal(self, ref: SandboxRef, signal: str) -> None:
        try:
            await self._connection.quick(lambda api: api.kill(ref.id, signal))
        except APIError as error:
            # Engines refuse in different words what does not run any more; one look tells.
            if (await self.inspect(ref)).state in _LIVE:
                raise EngineError(f"{signal} did not reach {ref.name}: {words(error)}") from error

    async def _ended(self, ref: SandboxRef, within_s: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while (await self.inspect(ref)).state in _LIVE:
            left_s = deadline - loop.time()
            if left_s <= 0:
                return False
            await asyncio.sleep(min(_POLL_S, left_s))
        return True
