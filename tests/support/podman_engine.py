"""Podman for tests: the one that `PORTSIDE_TEST_PODMAN` names, else one of the run's own, as root.

Load it with `pytest_plugins = ["tests.support.podman_engine"]`. Its storage and its configuration lie in a
directory that is removed at the end.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from container.adapters.docker.engine import DockerEngine
from container.engine.errors import EngineError
from tests.support.deadline import eventually
from tests.support.docker_engine import built_image, missing, opened
from tests.support.patient_engine import patient_engine

# The runtime that works on either version of control groups; limits that a host without CAP_SYS_RESOURCE can set.
_SETTINGS = """
[containers]
default_ulimits = ["nproc=1024:1024", "nofile=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_STARTS_WITHIN_S = 20.0


@pytest.fixture(scope="session")
def podman() -> Iterator[tuple[str, str]]:
    """Where Podman answers, and the worker image that it has."""
    named = os.environ.get("PORTSIDE_TEST_PODMAN")
    if named is not None:
        yield named, asyncio.run(built_image(named))
        return
    if os.getuid() != 0 or shutil.which("podman") is None:
        missing("Podman is not installed, or these tests don't run as root")
    folder = Path(tempfile.mkdtemp(prefix="psp-"))
    places = ("--root", str(folder / "root"), "--runroot", str(folder / "run"))
    (folder / "containers.conf").write_text(_SETTINGS)
    environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}
    endpoint = f"unix://{folder / 'podman.sock'}"
    service = subprocess.Popen(
        ["podman", *places, "system", "service", "-t", "0", endpoint],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield endpoint, asyncio.run(_ready(endpoint))
    finally:
        service.terminate()
        service.wait()
        _remove(folder, places, environment)


@pytest.fixture(scope="session")
def podman_engine(podman: tuple[str, str]) -> Iterator[DockerEngine]:
    """The engine itself; it may be used from any test's event loop."""
    with opened(podman[0]) as engine:
        yield engine


async def _ready(endpoint: str) -> str:
    socket = Path(endpoint.removeprefix("unix://"))
    await eventually(socket.exists, within_s=_STARTS_WITHIN_S)
    engine = patient_engine(endpoint)
    try:
        await engine.describe()
    except EngineError as error:
        missing(f"Podman does not answer: {error.message}")
    finally:
        await engine.close()
    return await built_image(endpoint)


def _remove(folder: Path, places: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Containers that a failed test left hold mounts below the directory."""
    subprocess.run(
        ["podman", *places, "rm", "--all", "--force"], env=environment, capture_output=True, check=False
    )
    shutil.rmtree(folder, ignore_errors=True)
