"""A worker brought along into an image that has none (DC-3, PD-33)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from container.adapters.docker.build_context import Sources
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.host_base import HOST_BASE
from container.adapters.docker.image import REPOSITORY, WorkerImage
from container.adapters.docker.private_daemon import PrivateDaemon
from container.adapters.docker.worker_kit import WorkerKit
from container.adapters.docker.worker_starts import WorkerStarts, refuse_foreign
from container.engine.errors import ImageMissing, LaunchFailed
from container.engine.sandbox import WorkerStart
from tests.support.bare_image import root_of
from tests.support.deadline import eventually
from tests.support.patient_engine import patient_engine
from tests.support.sandboxes import Sandboxes
from worker.tools.environment import child_environment

# A removal waits until what others write is on disk.
pytestmark = [pytest.mark.docker, pytest.mark.timeout(400)]


@pytest.fixture
def starts(boxes: Sandboxes, tmp_path: Path) -> WorkerStarts:
    assert isinstance(boxes.engine, DockerEngine)
    image = WorkerImage(boxes.engine.connection, cache_dir=tmp_path)
    return WorkerStarts(boxes.engine, image)


@pytest.fixture
def api(docker_endpoint: str) -> Iterator[Any]:
    client = APIClient(base_url=docker_endpoint, version="1.41", timeout=300)
    yield client
    client.close()


async def test_the_worker_starts_in_an_image_without_python_whatever_that_image_says_to_loaders(
    starts: WorkerStarts, boxes: Sandboxes, bare_image: str
) -> None:
    """Its own loader, libraries, Python and git; the same seal; writable where its own image is, and nowhere else."""
    start = await starts.start_in(bare_image)
    code = (
        "import json, os, subprocess, sys, worker.run, jsonschema_rs\n"
        "maps = {line.split()[-1] for line in open('/proc/self/maps') if '/' in line}\n"
        "print(json.dumps({'ids': [os.getuid(), os.getgid()], 'executable': sys.executable, 'here': os.getcwd(),"
        " 'foreign': sorted(path for path in maps if not path.startswith('/opt/portside/')),"
        " 'git': subprocess.run(['git', '--version'], capture_output=True, text=True, env={'PATH': os.environ['PATH']}).returncode,"
        " 'writable': [p for p in ('/workspace', '/state', '/state/home', '/opt/portside', '/opt/tools', '/')"
        " if os.access(p, os.W_OK)], 'environment': dict(os.environ)}))"
    )
    status, printed = await boxes.run(*start.python, "-c", code, **_of(start))
    assert status.exit_code == 0, printed
    seen = json.loads(printed)
    assert seen["ids"] == [1000, 1000]
    assert seen["executable"] == "/opt/portside/bin/python3"
    assert seen["foreign"] == []
    assert seen["git"] == 0
    assert seen["here"] == "/workspace"
    assert seen["writable"] == ["/workspace", "/state", "/state/home"]
    commands = child_environment(seen["environment"], {})
    assert commands["PATH"] == "/opt/tools:/bin"
    assert commands["GREETING"] == "hello from the image"
    assert commands["PYTHONPATH"] == "/opt/tools"
    assert commands["HOME"] == "/state/home"


async def test_volumes_of_a_job_in_such_an_image_go_with_it(
    starts: WorkerStarts, boxes: Sandboxes, bare_image: str, api: Any
) -> None:
    """BR-098: its own too; the kit, which others share, stays."""
    start = await starts.start_in(bare_image)
    ref = await boxes.launch(*start.python, "-c", "open('/workspace/f', 'w')", **_of(start))
    assert (await boxes.finish(ref)).exit_code == 0
    assert start.kit is not None
    used = {mount["Name"] for mount in api.inspect_container(ref.id)["Mounts"] if mount["Type"] == "volume"}
    assert len(used) == 4  # workspace, state, the image's own /data, and the kit
    await boxes.engine.remove(ref)
    left = {volume["Name"] for volume in api.volumes()["Volumes"]}
    assert used & left == {start.kit.volume}


async def test_the_workers_own_image_and_what_is_built_on_it_need_nothing_brought_along(
    starts: WorkerStarts, boxes: Sandboxes, derived: str
) -> None:
    assert await starts.start_in("") == WorkerStart(boxes.image)
    assert await starts.start_in(derived) == WorkerStart(derived)


async def test_a_kit_is_filled_once_for_all_who_want_it_at_once_and_again_when_it_was_cut_off(
    boxes: Sandboxes, derived: str, api: Any
) -> None:
    """The first filling is killed in its middle; three wait for it, and each finds a whole one."""
    assert isinstance(boxes.engine, DockerEngine)
    kits = [WorkerKit(boxes.engine.connection) for _ in range(3)]
    waiting = asyncio.gather(*(kit.ensure(derived) for kit in kits))
    await eventually(lambda: _filling(api, derived), within_s=20)
    first = _filling(api, derived)
    api.kill(first)
    (name,) = set(await waiting)
    filled = api.inspect_container(name)
    # The same container started anew, or another: whoever of the three came first after the kill decides.
    assert filled["State"]["ExitCode"] == 0
    before = filled["State"]["FinishedAt"]
    assert await kits[0].ensure(derived) == name
    assert api.inspect_container(name)["State"]["FinishedAt"] == before
    api.remove_container(name)
    api.remove_volume(name)


async def test_an_image_that_cannot_be_had_is_named_with_what_to_do(starts: WorkerStarts) -> None:
    with pytest.raises(ImageMissing, match=r"127\.0\.0\.1:1/nothing:1 .*can't be pulled.*docker build"):
        await starts.start_in("127.0.0.1:1/nothing:1")


def test_an_image_of_another_processor_is_refused_with_the_one_to_take() -> None:
    with pytest.raises(LaunchFailed, match=r"is made for arm64.*linux/amd64"):
        refuse_foreign(
            "x:1", {"Os": "linux", "Architecture": "arm64"}, {"Os": "linux", "Architecture": "amd64"}
        )


async def test_pruning_takes_stale_images_and_kits_and_leaves_what_fits_or_is_in_use(
    daemon: PrivateDaemon, tmp_path: Path
) -> None:
    engine = patient_engine(daemon.endpoint)
    api: Any = APIClient(base_url=daemon.endpoint, version="1.41", timeout=300)
    api.import_image_from_data(root_of("sh"), repository=HOST_BASE.partition(":")[0], tag="host")
    base_id = api.inspect_image(HOST_BASE)["Id"]
    fitting = f"{REPOSITORY}:{Sources.here().digest(base_id)}"
    for tag in (fitting.partition(":")[2], "of-others", "in-use"):
        api.import_image_from_data(
            root_of("sh", "sleep"), repository=REPOSITORY, tag=tag, changes=[f"LABEL a={tag}"]
        )
    used = api.create_container(f"{REPOSITORY}:in-use", ["sleep", "60"], volumes=["/x"])["Id"]
    api.start(used)
    api.create_volume("portside-kit-old", labels={"portside.kit": "portside-kit-old"})
    image = WorkerImage(engine.connection, cache_dir=tmp_path)
    kit = WorkerKit(engine.connection)
    assert await kit.remove_stale(fitting) == ["portside-kit-old"]
    assert await image.remove_stale() == [f"{REPOSITORY}:of-others"]
    assert {one.tag for one in await image.list()} == {fitting, f"{REPOSITORY}:in-use"}
    api.close()
    await engine.close()


@pytest.fixture
async def derived(boxes: Sandboxes, api: Any) -> AsyncIterator[str]:
    """An image built on the worker image."""
    name = f"{boxes.labels['portside.test']}:1"
    made = api.create_container(boxes.image, ["true"])["Id"]
    api.commit(made, *name.split(":"), changes=[f"LABEL built={name}"])
    api.remove_container(made, v=True)
    yield name
    api.remove_image(name, force=True)


def _of(start: WorkerStart) -> dict[str, Any]:
    return {"image": start.image, "env": start.env, "kit": start.kit}


def _filling(api: Any, image: str) -> str:
    """The container that fills the kit of an image, once its work has begun; empty before."""
    rows = api.containers(all=True, filters={"label": "portside.kit", "status": "running"})
    image_id = api.inspect_image(image)["Id"]
    return next((str(row["Id"]) for row in rows if row["ImageID"] == image_id), "")
