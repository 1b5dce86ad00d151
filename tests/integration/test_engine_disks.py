"""Disks that end at their size (BR-106, PD-73)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from container.adapters.docker.bounded_disks import BoundedDisks, DiskSize
from container.adapters.docker.connection import connect
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.loop_device import attached
from container.adapters.docker.status import LABEL
from container.engine.errors import EngineError, ImageMissing
from container.engine.sandbox import Limits, SandboxState
from tests.support.docker_engine import missing
from tests.support.patient_engine import patient_engine
from tests.support.sandboxes import Sandboxes

pytestmark = pytest.mark.docker

MIB = 2**20
FILLS = "head -c 64M /dev/zero > /workspace/big; head -c 64M /dev/zero > /state/big; wc -c /workspace/big /state/big"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "disks"


@pytest.fixture
async def bounded(docker_endpoint: str, worker_image: str, folder: Path) -> AsyncIterator[Sandboxes]:
    """Sandboxes with disks of 24 MiB."""
    disks = BoundedDisks(folder, DiskSize(24 * MIB, 1000))
    if disks.obstacle():
        missing(disks.obstacle())
    made = Sandboxes(patient_engine(docker_endpoint, disks=disks), worker_image)
    yield made
    await made.remove_all()
    await made.engine.close()


async def test_a_disk_ends_at_its_size_and_goes_with_its_sandbox(bounded: Sandboxes, folder: Path) -> None:
    """BR-106 job A: no space left, inside; outside never more than was allowed, and nothing afterwards."""
    assert "disk_bytes" not in (await bounded.engine.describe()).unenforced
    status, printed = await bounded.run("sh", "-c", FILLS)
    assert "No space left on device" in printed
    assert status.exit_code == 0
    files = _disks_in(folder, status.ref.name)
    assert len(files) == 2
    assert all(file.stat().st_blocks * 512 <= 24 * MIB for file in files)
    await bounded.engine.remove(status.ref)
    assert not any(file.exists() or attached(file) for file in files)


async def test_an_explicit_size_is_held_where_it_can_be(bounded: Sandboxes) -> None:
    limits = Limits(disk_bytes=40 * MIB, explicit=frozenset({"disk_bytes"}))
    _, printed = await bounded.run("sh", "-c", "df --output=size -k /workspace | tail -1", limits=limits)
    assert 24 * 1024 < int(printed) < 41 * 1024


async def test_a_launch_that_fails_leaves_no_disk(bounded: Sandboxes, folder: Path) -> None:
    """BR-109: nothing that was made for it stays."""
    with pytest.raises(ImageMissing):
        await bounded.launch("true", image="portside-worker:0000")
    assert _disks_in(folder) == []


async def test_a_launch_that_gets_one_of_its_two_disks_leaves_neither(
    bounded: Sandboxes, folder: Path, docker_endpoint: str
) -> None:
    """BR-109: the host's disk was full half-way."""
    spec = bounded.spec(("true",))
    await asyncio.to_thread(folder.mkdir)
    (folder / f"{spec.name}-state.ext4").symlink_to("nowhere")
    with pytest.raises(EngineError, match="no disk can be made"):
        await bounded.engine.launch(spec)
    assert not (folder / f"{spec.name}-workspace.ext4").exists()
    api = connect(docker_endpoint, 60)
    assert not api.volumes(filters={"label": f"{LABEL}={spec.name}"})["Volumes"]
    api.close()


async def test_one_name_launched_at_the_same_moment_has_one_pair_of_disks(
    bounded: Sandboxes, folder: Path
) -> None:
    spec = bounded.spec(("sleep", "60"))
    refs = await asyncio.gather(*(bounded.engine.launch(spec) for _ in range(3)))
    assert len(set(refs)) == 1
    assert (await bounded.engine.inspect(refs[0])).state is SandboxState.RUNNING
    assert len(_disks_in(folder)) == 2


async def test_disks_of_a_killed_launch_are_swept_and_those_in_use_are_not(
    bounded: Sandboxes, folder: Path
) -> None:
    """BR-098: a disk without a sandbox, and old enough to be nobody's."""
    assert isinstance(bounded.engine, DockerEngine)
    ref = await bounded.launch("sleep", "60")
    disks = BoundedDisks(folder)
    lost, fresh = folder / "portside-lost-workspace.ext4", folder / "portside-fresh-workspace.ext4"
    size = DiskSize(24 * MIB, 1000)
    for name in ("portside-lost-workspace", "portside-fresh-workspace"):
        await asyncio.to_thread(disks.make, name, size)
    for file in set(_disks_in(folder)) - {fresh}:
        os.utime(file, (0, 0))
    await bounded.engine.sweep()
    assert (lost.exists(), attached(lost)) == (False, [])
    assert len(_disks_in(folder, ref.name)) == 2
    assert fresh.exists()
    disks.release("portside-fresh-workspace")


async def test_disks_whose_folder_was_removed_under_them_are_let_go(bounded: Sandboxes, folder: Path) -> None:
    """BR-098: a state directory that somebody removed while the orchestrator was dead."""
    assert isinstance(bounded.engine, DockerEngine)
    disks = BoundedDisks(folder)
    device = await asyncio.to_thread(disks.make, "portside-x-state", DiskSize(24 * MIB, 1000))
    (file,) = _disks_in(folder)
    await asyncio.to_thread(file.unlink)
    await bounded.engine.sweep()
    backing = Path("/sys/block") / device.name / "loop" / "backing_file"
    assert not backing.exists() or str(file) not in await asyncio.to_thread(backing.read_text)


async def test_without_room_on_the_host_a_launch_says_so(docker_endpoint: str, worker_image: str) -> None:
    """BR-106: the orchestrator's own disk is full."""
    full = Sandboxes(patient_engine(docker_endpoint, disks=BoundedDisks(Path("/proc/self"))), worker_image)
    with pytest.raises(EngineError, match=r"/proc/self has 0 MiB left: make room"):
        await full.launch("true")
    await full.engine.close()


async def test_without_root_the_engine_says_that_disk_is_not_bounded(docker_endpoint: str) -> None:
    class Rootless(BoundedDisks):
        def obstacle(self) -> str:
            return "bounded disks need root"

    engine = patient_engine(docker_endpoint, disks=Rootless(Path("/nonexistent")))
    assert "need root" in (await engine.describe()).unenforced["disk_bytes"]
    await engine.close()


def _disks_in(folder: Path, name: str = "portside-") -> list[Path]:
    return sorted(folder.glob(f"{name}*"))
