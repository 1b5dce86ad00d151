"""What every engine does, whichever it is.

The fake runs everywhere. Docker is started privately when none answers, or none has gVisor, and so is Podman.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from container.adapters.docker.engine import DockerEngine
from container.engine.errors import ImageMissing, LimitNotEnforceable, SandboxNotFound
from container.engine.port import SandboxEngine
from container.engine.sandbox import EventKind, Limits, SandboxRef, SandboxState
from tests.fakes.engine import FakeEngine, FakeSandbox, Program, until_stopped
from tests.support.docker_engine import opened
from tests.support.sandboxes import Sandboxes

SPEAKS = ("sh", "-c", "echo out; echo err >&2; exit 3")
SLEEPS = ("sleep", "60")
STUBBORN = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
WRITES = ("sh", "-c", "mkdir d; printf data > d/a.txt; echo written; sleep 60")
FLOODS = ("sh", "-c", "seq 1 20000; head -c 20001 /dev/zero | tr '\\0' x; echo; printf 'the end'")
FLOOD = "".join(f"{number}\n" for number in range(1, 20_001)) + "x" * 20_001 + "\nthe end"


async def _speaks(sandbox: FakeSandbox) -> int:
    sandbox.write("out\nerr\n")
    return 3


async def _stubborn(sandbox: FakeSandbox) -> int:
    sandbox.ignores_sigterm = True
    sandbox.write("ready\n")
    return await until_stopped(sandbox)


async def _writes(sandbox: FakeSandbox) -> int:
    sandbox.files["/workspace/d/a.txt"] = b"data"
    sandbox.write("written\n")
    return await until_stopped(sandbox)


async def _floods(sandbox: FakeSandbox) -> int:
    sandbox.write(FLOOD)
    return 0


PROGRAMS: dict[tuple[str, ...], Program] = {
    SPEAKS: _speaks,
    STUBBORN: _stubborn,
    WRITES: _writes,
    FLOODS: _floods,
}


@pytest.fixture(scope="module")
def gvisor_engine(gvisor: tuple[str, str]) -> Iterator[DockerEngine]:
    with opened(gvisor[0], runtime="runsc") as engine:
        yield engine


@pytest.fixture(
    params=[
        "fake",
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("gvisor", marks=[pytest.mark.docker, pytest.mark.xdist_group("gvisor")]),
        pytest.param("podman", marks=[pytest.mark.docker, pytest.mark.xdist_group("podman")]),
    ]
)
def place(request: pytest.FixtureRequest) -> tuple[SandboxEngine, str]:
    """An engine, and an image that it has."""
    if request.param == "fake":
        return FakeEngine(programs=PROGRAMS, images={"the-image"}), "the-image"
    engine = request.getfixturevalue(f"{request.param}_engine")
    if request.param == "docker":
        return engine, request.getfixturevalue("worker_image")
    return engine, request.getfixturevalue(request.param)[1]


@pytest.fixture
async def boxes(place: tuple[SandboxEngine, str]) -> AsyncIterator[Sandboxes]:
    """Sandboxes on it, removed at the end."""
    made = Sandboxes(*place)
    yield made
    await made.remove_all()


async def test_a_sandbox_runs_its_command_and_keeps_exit_code_and_output(boxes: Sandboxes) -> None:
    status, printed = await boxes.run(*SPEAKS)
    assert (status.state, status.exit_code, status.oom_killed) == (SandboxState.EXITED, 3, False)
    assert sorted(printed.split()) == ["err", "out"]
    assert status.started_at is not None
    assert status.finished_at is not None


async def test_launching_the_same_name_twice_answers_the_same_sandbox(boxes: Sandboxes) -> None:
    spec = boxes.spec(SLEEPS)
    first = await boxes.engine.launch(spec)
    assert await boxes.engine.launch(spec) == first
    assert [status.ref for status in await boxes.engine.list(boxes.labels)] == [first]


async def test_launching_one_name_at_the_same_moment_makes_one_sandbox(boxes: Sandboxes) -> None:
    spec = boxes.spec(SLEEPS)
    refs = await asyncio.gather(*(boxes.engine.launch(spec) for _ in range(4)))
    assert len(set(refs)) == 1


async def test_launching_a_name_that_has_ended_does_not_run_it_again(boxes: Sandboxes) -> None:
    spec = boxes.spec(SPEAKS)
    before = await boxes.finish(await boxes.engine.launch(spec))
    await boxes.engine.launch(spec)
    assert await boxes.engine.inspect(before.ref) == before


async def test_a_sandbox_is_found_by_its_labels_and_only_by_them(boxes: Sandboxes) -> None:
    """BR-098: after a restart sandboxes are found by label, in any state, and nobody else's among them."""
    labels = {**boxes.labels, "portside.job": "j1"}
    running = await boxes.launch(*SLEEPS, labels=labels)
    ended = await boxes.finish(await boxes.launch(*SPEAKS, labels={**labels, "portside.job": "j2"}))
    found = {status.ref: status for status in await boxes.engine.list(boxes.labels)}
    assert found.keys() == {running, ended.ref}
    assert found[running].state is SandboxState.RUNNING
    assert found[running].labels["portside.job"] == "j1"
    assert found[ended.ref].exit_code == 3
    assert [status.ref for status in await boxes.engine.list(labels)] == [running]
    assert await boxes.engine.list({**boxes.labels, "portside.instance": "another"}) == []


async def test_stop_ends_a_sandbox_and_stopping_again_is_harmless(boxes: Sandboxes) -> None:
    """BR-108: a second cancel is harmless."""
    ref = await boxes.launch(*WRITES)
    await boxes.printed(ref, "written")  # before that, nobody takes the signal
    await boxes.engine.stop(ref, 10)
    status = await boxes.engine.inspect(ref)
    assert (status.state, status.exit_code) == (SandboxState.EXITED, 143)
    await boxes.engine.stop(ref, 10)
    await boxes.engine.remove(ref)
    await boxes.engine.stop(ref, 10)


async def test_what_ignores_sigterm_is_killed_and_is_not_called_out_of_memory(boxes: Sandboxes) -> None:
    """BR-108, BR-105 (c): SIGKILL after the grace, nothing runs when stop returns, and it is no OOM."""
    ref = await boxes.launch(*STUBBORN)
    await boxes.printed(ref, "ready")
    await boxes.engine.stop(ref, 0.5)
    status = await boxes.engine.inspect(ref)
    assert (status.state, status.exit_code) == (SandboxState.EXITED, 137)
    assert not status.ran_out_of_memory


async def test_a_sandbox_ends_by_itself_at_its_deadline(boxes: Sandboxes) -> None:
    status = await boxes.finish(await boxes.launch(*SLEEPS, deadline_s=0.5, stop_grace_s=0.5))
    assert status.exit_code in {124, 137}


async def test_removal_takes_running_sandboxes_and_removing_again_is_harmless(boxes: Sandboxes) -> None:
    ref = await boxes.launch(*SLEEPS)
    await boxes.engine.remove(ref)
    assert (await boxes.engine.inspect(ref)).state is SandboxState.GONE
    await boxes.engine.remove(ref)
    assert await boxes.engine.list(boxes.labels) == []


async def test_what_is_not_there_is_gone_and_gives_no_output(boxes: Sandboxes) -> None:
    """BR-113 (a): a vanished sandbox is GONE; the engine's words never pass for output."""
    ref = await boxes.launch(*SPEAKS)
    await boxes.engine.remove(ref)
    for nowhere in (ref, SandboxRef(name="portside-never", id="f" * 64)):
        assert (await boxes.engine.inspect(nowhere)).state is SandboxState.GONE
        with pytest.raises(SandboxNotFound):
            await boxes.engine.logs(nowhere)
        with pytest.raises(SandboxNotFound):
            await _collect(boxes, nowhere, "/workspace")


async def test_files_come_out_as_a_tar_of_a_running_and_of_a_stopped_sandbox(boxes: Sandboxes) -> None:
    ref = await boxes.launch(*WRITES)
    await boxes.printed(ref, "written")
    assert await _collect(boxes, ref, "/workspace/d") == {"d/a.txt": b"data"}
    await boxes.engine.stop(ref, 10)
    assert await _collect(boxes, ref, "/workspace/d") == {"d/a.txt": b"data"}
    with pytest.raises(SandboxNotFound):
        await _collect(boxes, ref, "/workspace/nothing")


async def test_logs_are_the_last_bytes_and_say_that_more_was_there(boxes: Sandboxes) -> None:
    """BR-107: reading logs is bounded, with a note of what was left out; however long a line is, it is whole."""
    ref = await boxes.launch(*FLOODS)
    await boxes.finish(ref)
    tail = await boxes.engine.logs(ref, tail_bytes=100)
    note, _, kept = tail.partition("\n")
    assert "left out" in note
    assert len(kept.encode()) == 100
    assert kept == FLOOD[-100:]
    assert await boxes.engine.logs(ref, tail_bytes=1_000_000) == FLOOD


async def test_events_tell_the_life_of_a_sandbox_in_order(boxes: Sandboxes) -> None:
    events = boxes.engine.events()
    seen: list[EventKind] = []
    async with asyncio.timeout(60):
        assert (await anext(events)).kind is EventKind.RESYNC  # from here on it is told of all
        ref = await boxes.launch(*SPEAKS)
        await boxes.finish(ref)
        await boxes.engine.remove(ref)
        while EventKind.REMOVED not in seen:
            event = await anext(events)
            if event.name == ref.name:
                seen.append(event.kind)
    assert seen == [EventKind.STARTED, EventKind.EXITED, EventKind.REMOVED]


async def test_a_missing_image_is_named_with_the_command_that_builds_it(boxes: Sandboxes) -> None:
    with pytest.raises(ImageMissing, match="portside-worker:0000"):
        await boxes.engine.prepare("portside-worker:0000")
    with pytest.raises(ImageMissing, match="portside-worker:0000"):
        await boxes.launch(*SLEEPS, image="portside-worker:0000")
    assert await boxes.engine.list(boxes.labels) == []


async def test_preparing_an_image_answers_its_unchanging_id(boxes: Sandboxes) -> None:
    first = await boxes.engine.prepare(boxes.image)
    assert first
    assert await boxes.engine.prepare(boxes.image) == first


@pytest.mark.parametrize(
    "limits",
    [
        Limits(disk_bytes=10**9, explicit=frozenset({"disk_bytes"})),
        Limits(cpus=1000.0, explicit=frozenset({"cpus"})),
    ],
    ids=["disk", "cpus"],
)
async def test_an_explicit_limit_that_cannot_be_held_is_refused(boxes: Sandboxes, limits: Limits) -> None:
    with pytest.raises(LimitNotEnforceable, match=next(iter(limits.explicit))):
        await boxes.launch(*SLEEPS, limits=limits)
    assert await boxes.engine.list(boxes.labels) == []


async def test_a_default_limit_above_what_the_engine_has_is_lowered(boxes: Sandboxes) -> None:
    ref = await boxes.launch(*SLEEPS, limits=replace(Limits(), cpus=1000.0))
    assert (await boxes.engine.inspect(ref)).state is SandboxState.RUNNING


async def test_the_description_names_the_engine_and_says_that_disk_is_unlimited(boxes: Sandboxes) -> None:
    description = await boxes.engine.describe()
    assert description.name
    assert description.cpus >= 1
    assert description.unenforced["disk_bytes"]


async def _collect(boxes: Sandboxes, ref: SandboxRef, path: str) -> dict[str, bytes]:
    packed = b"".join([piece async for piece in boxes.engine.collect(ref, path)])
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for member in tar:
            opened = tar.extractfile(member)
            if opened is not None:
                files[member.name] = opened.read()
    return files
