"""A container engine for tests: one that answers, else a private one, started as root and stopped at the end.

Load it with `pytest_plugins = ["tests.support.docker_engine"]`. Under pytest-xdist all workers of a run share
one private engine. To reuse a running one between runs, set `DOCKER_HOST`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from container.adapters.docker.discovery import candidates, discover
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.image import WorkerImage
from container.adapters.docker.private_daemon import PrivateDaemon
from container.engine.errors import EngineError, EngineUnavailable, RuntimeUnknown
from tests.support.patient_engine import patient_engine
from tests.support.sandboxes import Sandboxes


@pytest.fixture(scope="session")
def docker_endpoint() -> Iterator[str]:
    """Where an engine answers, for the whole run."""
    where = candidates(explicit=None, environment=os.environ, home=Path("/nonexistent"), uid=os.getuid())
    found = asyncio.run(discover(where))
    if found.endpoint is not None:
        yield found.endpoint
        return
    with _shared_daemon() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def docker_engine(docker_endpoint: str) -> Iterator[DockerEngine]:
    """The engine itself; it may be used from any test's event loop."""
    with opened(docker_endpoint) as engine:
        yield engine


@pytest.fixture(scope="session")
def worker_image(docker_endpoint: str) -> str:
    """The worker image's tag, built once."""
    try:
        return asyncio.run(built_image(docker_endpoint))
    except EngineError as error:
        missing(f"the worker image can't be built: {error.message}")


@pytest.fixture(scope="session")
def gvisor(docker_endpoint: str) -> Iterator[tuple[str, str]]:
    """An engine that has the runtime `runsc`, and the worker image on it."""
    if shutil.which("runsc") is None:
        missing("gVisor is not installed. Type, as root: apt-get install runsc")
    if _has_gvisor(docker_endpoint):
        yield docker_endpoint, asyncio.run(built_image(docker_endpoint))
        return
    directory = Path(tempfile.mkdtemp(prefix="psg-"))  # the path of a socket is short
    daemon = PrivateDaemon(directory / "e")
    try:
        yield daemon.start(), asyncio.run(built_image(daemon.endpoint))
    except EngineUnavailable as error:
        missing(error.message)
    finally:
        daemon.stop()
        shutil.rmtree(directory)


def _has_gvisor(endpoint: str) -> bool:
    engine = patient_engine(endpoint, runtime="runsc")

    async def asked() -> bool:
        try:
            await engine.describe()
        except RuntimeUnknown:
            return False
        finally:
            await engine.close()
        return True

    return asyncio.run(asked())


@pytest.fixture
async def boxes(docker_endpoint: str, worker_image: str) -> AsyncIterator[Sandboxes]:
    """Sandboxes on the real engine, removed at the end."""
    engine = patient_engine(docker_endpoint)
    made = Sandboxes(engine, worker_image)
    yield made
    await made.remove_all()
    await engine.close()


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A directory whose path leaves room for a socket's name (107 bytes)."""
    directory = Path(tempfile.mkdtemp(prefix="pst-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def daemon(short_dir: Path) -> Iterator[PrivateDaemon]:
    """A private engine of this test alone, to be ill-treated."""
    private = PrivateDaemon(short_dir / "e")
    try:
        private.start()
    except EngineUnavailable as error:
        missing(error.message)
    yield private
    pid = private.pid()
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
    private.stop()


@contextmanager
def opened(endpoint: str, *, runtime: str = "") -> Generator[DockerEngine]:
    """An engine for many tests: Podman takes seconds to describe itself."""
    engine = patient_engine(endpoint, runtime=runtime)
    yield engine
    asyncio.run(engine.close())


async def built_image(endpoint: str) -> str:
    """Build the worker image unless it is there; the fetched libraries are kept between runs."""
    cache_dir = Path(tempfile.gettempdir()) / f"portside-test-libraries-{os.getuid()}"
    engine = patient_engine(endpoint)
    with _locked(cache_dir.with_suffix(".lock")):
        tag = await WorkerImage(engine.connection, cache_dir=cache_dir).ensure()
    await engine.close()
    return tag


def missing(reason: str) -> NoReturn:
    """What a test needs is not there: a failure in CI, a skip that says so elsewhere."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextmanager
def _shared_daemon() -> Generator[str]:
    """One daemon for all processes of this run; the last to leave stops it and removes its files."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    directory = Path(tempfile.gettempdir()) / f"portside-engine-{run}"
    directory.mkdir(mode=0o700, exist_ok=True)
    daemon = PrivateDaemon(directory / "d")
    with (directory / "users").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with _locked(directory / "start"):
            try:
                endpoint = daemon.start()
            except EngineUnavailable as error:
                missing(error.message)
        yield endpoint
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another worker of this run still uses it
        daemon.stop()
        shutil.rmtree(directory)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
