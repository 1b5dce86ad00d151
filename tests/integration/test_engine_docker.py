"""What goes wrong with containers and with engines, on a real Docker."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient
from docker.errors import NotFound

from container.adapters.docker.connection import connect
from container.adapters.docker.engine import DockerEngine
from container.adapters.docker.isolation import create_arguments, host_config
from container.adapters.docker.private_daemon import PrivateDaemon
from container.engine.errors import EngineUnavailable, ImageMissing, LaunchFailed
from container.engine.sandbox import (
    EventKind,
    Limits,
    SandboxEvent,
    SandboxRef,
    SandboxSpec,
    SandboxState,
)
from tests.fakes.engine import FakeEngine
from tests.support.deadline import within
from tests.support.docker_engine import built_image
from tests.support.mcp import alive
from tests.support.patient_engine import patient_engine
from tests.support.sandboxes import Sandboxes

pytestmark = pytest.mark.docker

MIB = 2**20


@pytest.fixture
def api(docker_endpoint: str) -> Iterator[Any]:
    """An operator with the SDK in hand, beside the adapter; Any, as its stubs leave most answers open."""
    client = APIClient(base_url=docker_endpoint, version="1.41")
    yield client
    client.close()


async def test_what_can_not_be_an_images_name_is_told_as_that(boxes: Sandboxes) -> None:
    with pytest.raises(ImageMissing, match=r"'NO SUCH' can't be an image's name: .*must be lowercase"):
        await boxes.engine.prepare("NO SUCH")


async def test_out_of_memory_is_told_when_the_first_process_dies_of_it(boxes: Sandboxes) -> None:
    """BR-105 (a): the cause is known, and the last output kept."""
    limits = replace(Limits(), memory_bytes=128 * MIB)
    status, printed = await boxes.python("print('about to', flush=True); bytearray(10**9)", limits=limits)
    assert (status.exit_code, status.ran_out_of_memory) == (137, True)
    assert printed == "about to\n"


async def test_a_child_that_runs_out_of_memory_does_not_make_the_job_one_that_did(boxes: Sandboxes) -> None:
    """BR-105 (b): the child is gone, the sandbox ends as it wants; the engine's flag alone proves nothing."""
    status, printed = await boxes.run(
        "sh",
        "-c",
        "python3 -c 'bytearray(10**9)'; echo child $?",
        limits=replace(Limits(), memory_bytes=128 * MIB),
    )
    assert "child 137" in printed.splitlines()
    assert (status.exit_code, status.ran_out_of_memory) == (0, False)


async def test_a_kill_from_outside_is_not_out_of_memory(boxes: Sandboxes, api: Any) -> None:
    """BR-105 (c): killed."""
    ref = await boxes.launch("sleep", "60")
    api.kill(ref.id, "SIGKILL")
    status = await boxes.finish(ref)
    assert (status.exit_code, status.ran_out_of_memory) == (137, False)


async def test_a_flood_of_output_stays_bounded_on_disk_and_when_read(boxes: Sandboxes, api: Any) -> None:
    """BR-107: one line of 100 MB and many short ones; reading and removing take their normal time."""
    code = (
        "import sys\nfor _ in range(100): sys.stdout.write('x' * 2**20)\n"
        "print()\nfor n in range(200000): print('line', n)\n"
    )
    ref = await boxes.launch("python3", "-c", code, limits=replace(Limits(), log_bytes=2 * MIB))
    await boxes.finish(ref, within_s=60)
    log = Path(api.inspect_container(ref.id)["LogPath"])
    on_disk = sum(path.stat().st_size for path in log.parent.glob(f"{log.name}*"))
    assert on_disk < 3 * MIB
    printed = await boxes.engine.logs(ref, tail_bytes=10_000)
    assert len(printed) < 10_100
    assert printed.endswith("line 199999\n")
    async with asyncio.timeout(10):
        await boxes.engine.remove(ref)


async def test_twenty_stops_take_one_grace_period(boxes: Sandboxes) -> None:
    """BR-108 (c): jobs that ignore SIGTERM are stopped together, not one after the other."""
    stubborn = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.2; done")
    refs = await asyncio.gather(*(boxes.launch(*stubborn) for _ in range(12)))
    await asyncio.gather(*(boxes.printed(ref, "ready") for ref in refs))
    grace_s = 3.0
    async with asyncio.timeout(grace_s * 5):  # one after the other: 36 s; four at a time: 9 s and the killing
        await asyncio.gather(*(boxes.engine.stop(ref, grace_s) for ref in refs))
    states = {(await boxes.engine.inspect(ref)).state for ref in refs}
    assert states == {SandboxState.EXITED}


async def test_a_paused_sandbox_is_seen_as_paused_and_can_be_stopped(boxes: Sandboxes, api: Any) -> None:
    """BR-113 (b): paused is not finished."""
    ref = await boxes.launch("sleep", "60")
    api.pause(ref.id)
    assert (await boxes.engine.inspect(ref)).state is SandboxState.PAUSED
    async with asyncio.timeout(20):
        await boxes.engine.stop(ref, 0.5)
    assert (await boxes.engine.inspect(ref)).state is SandboxState.EXITED


async def test_a_sandbox_that_an_operator_removes_is_gone_and_its_volumes_can_be_removed(
    boxes: Sandboxes, api: Any
) -> None:
    """BR-113 (a), BR-098: the event comes, it is GONE, and `remove` takes the volumes left behind."""
    events = boxes.engine.events()
    await _hear(events, EventKind.RESYNC)
    ref = await boxes.launch("sleep", "60")
    api.remove_container(ref.id, force=True)  # without its volumes
    async with asyncio.timeout(60):
        while await anext(events) != SandboxEvent(EventKind.REMOVED, ref.name):
            pass  # other tests' sandboxes live on this engine too
    assert (await boxes.engine.inspect(ref)).state is SandboxState.GONE
    assert len(_volumes(api, ref)) == 2
    await boxes.engine.remove(ref)
    assert _volumes(api, ref) == []


async def test_removal_takes_the_volumes_with_it(boxes: Sandboxes, api: Any) -> None:
    """BR-098: nothing of a dead job stays, also files that its user could not delete."""
    ref = await boxes.launch("sh", "-c", "mkdir ro; touch ro/f; chmod 555 ro; touch /state/x")
    await boxes.finish(ref)
    assert len(_volumes(api, ref)) == 2
    await boxes.engine.remove(ref)
    assert _volumes(api, ref) == []


async def test_containers_of_others_are_neither_listed_nor_taken(boxes: Sandboxes, api: Any) -> None:
    """BR-098: a container of another product is invisible, even under a name that we want."""
    spec = boxes.spec(("sleep", "60"))
    foreign = api.create_container(boxes.image, name=spec.name, command=["sleep", "60"])["Id"]
    try:
        assert foreign not in {status.ref.id for status in await boxes.engine.list({})}
        with pytest.raises(LaunchFailed, match="is not this job's"):
            await boxes.engine.launch(spec)
        assert api.inspect_container(foreign)["State"]["Status"] == "created"
    finally:
        api.remove_container(foreign, force=True, v=True)


async def test_a_sandbox_of_another_instance_is_not_taken_for_ours(boxes: Sandboxes) -> None:
    """BR-098: the same name with other labels is somebody else's."""
    spec = boxes.spec(("sleep", "60"))
    await boxes.engine.launch(spec)
    with pytest.raises(LaunchFailed, match="is not this job's"):
        await boxes.engine.launch(replace(spec, labels={**spec.labels, "portside.instance": "other"}))


async def test_a_start_that_fails_leaves_nothing_behind(boxes: Sandboxes, api: Any, tmp_path: Path) -> None:
    """BR-109: no half-made container, and the name is free again."""
    blocked = tmp_path / "file"
    blocked.write_text("a file can't be mounted over a directory")
    spec = boxes.spec(("sleep", "60"), socket_dir=blocked)
    with pytest.raises(LaunchFailed, match=spec.name):
        await boxes.engine.launch(spec)
    with pytest.raises(NotFound):
        api.inspect_container(spec.name)
    assert api.volumes(filters={"label": f"portside.sandbox={spec.name}"})["Volumes"] in ([], None)
    await boxes.engine.launch(replace(spec, socket_dir=None))


async def test_a_launch_that_was_cut_off_between_create_and_start_goes_on(boxes: Sandboxes, api: Any) -> None:
    """BR-109: a container that was only created is found by label, and launching its name starts it."""
    spec = boxes.spec(("sh", "-c", "echo started"))
    config = host_config(spec, cpus=1.0, api_version="1.41")
    made = api.create_container(**create_arguments(spec), host_config=config)["Id"]
    assert [status.state for status in await boxes.engine.list(boxes.labels)] == [SandboxState.CREATED]
    ref = await boxes.engine.launch(spec)
    assert ref.id == made
    assert (await boxes.finish(ref)).exit_code == 0


# --- engines that are not there, hang, or go away ---


async def test_no_socket_is_told_with_the_way_out(tmp_path: Path) -> None:
    """BR-103 (a)."""
    await _is_unavailable(tmp_path / "nothing.sock", "does not exist.*doctor --fix")


async def test_a_socket_that_nobody_listens_on_is_told_apart(short_dir: Path) -> None:
    """BR-103: the file is left from an engine that has stopped."""
    server = await asyncio.start_unix_server(lambda _r, _w: None, short_dir / "s")
    server.close()
    await server.wait_closed()
    await _is_unavailable(short_dir / "s", "nobody listens")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_permission_denied_is_told_with_the_way_out(short_dir: Path) -> None:
    """BR-103 (b)."""
    async with await asyncio.start_unix_server(lambda _r, _w: None, short_dir / "s"):
        await asyncio.to_thread((short_dir / "s").chmod, 0o600)
        await asyncio.to_thread(short_dir.chmod, 0o755)
        child = os.fork()
        if child == 0:
            os._exit(_as_nobody(short_dir / "s"))
        assert os.waitstatus_to_exitcode(await asyncio.to_thread(lambda: os.waitpid(child, 0)[1])) == 0


async def test_an_engine_that_never_answers_fails_in_time_and_the_loop_goes_on(short_dir: Path) -> None:
    """BR-103 (c): every waiting call ends by its deadline, also those queued behind others."""
    held: list[asyncio.StreamWriter] = []
    async with await asyncio.start_unix_server(lambda _r, writer: held.append(writer), short_dir / "s"):
        engine = DockerEngine(f"unix://{short_dir / 's'}", quick_s=0.5, slow_s=30)
        ref = SandboxRef("portside-x", "0" * 64)
        calls = [engine.inspect(ref) for _ in range(240)]  # four at a time would take 30 s
        loop = asyncio.get_running_loop()
        before, turns = loop.time(), 0
        waiting = asyncio.gather(*calls, engine.launch(_any_spec()), return_exceptions=True)
        while not waiting.done():
            turns += 1
            await asyncio.sleep(0.01)
        assert loop.time() - before < 20
        assert turns > 50
        for error in await waiting:
            assert isinstance(error, EngineUnavailable)
            assert "did not answer within 0.5 s" in error.message
            assert error.retryable
        await engine.close()
        for writer in held:
            writer.close()


async def test_a_container_that_the_engine_is_busy_with_holds_up_no_look_at_the_others(
    short_dir: Path,
) -> None:
    """BR-103: taking a disk away can take minutes; that one still runs for all that is known."""
    rows = [
        {"Id": name, "Names": [f"/{name}"], "State": state, "Labels": {"portside.job": name}}
        for name, state in (("runs", "running"), ("ended", "exited"), ("stuck", "exited"))
    ]
    ended = {"Id": "ended", "Name": "/ended", "State": {"Status": "exited", "ExitCode": 3}}
    answers = {"/version": {"ApiVersion": "1.41"}, "/containers/json": rows, "/containers/ended/json": ended}

    writers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split()[1].decode().partition("?")[0].removeprefix("/v1.41")
                if path in answers:
                    body = json.dumps(answers[path]).encode()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                    writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async with await asyncio.start_unix_server(answer, short_dir / "s"):
        engine = DockerEngine(f"unix://{short_dir / 's'}", quick_s=2.0)
        found = {one.ref.name: one for one in await within(60.0, engine.list({}))}
        await engine.close()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers))
    assert {name: (one.state, one.exit_code) for name, one in found.items()} == {
        "runs": (SandboxState.RUNNING, None),
        "ended": (SandboxState.EXITED, 3),
        "stuck": (SandboxState.RUNNING, None),
    }
    assert found["stuck"].labels == {"portside.job": "stuck"}


async def test_after_a_restart_of_the_engine_jobs_are_lost_and_new_ones_work(daemon: PrivateDaemon) -> None:
    """BR-103 (d): listeners get one RESYNC, the job shows its end, and nothing of ours needs a restart.

    A second daemon beside the session's also proves that both live on one machine.
    """
    image = await built_image(daemon.endpoint)
    boxes = Sandboxes(patient_engine(daemon.endpoint), image)
    events = boxes.engine.events()
    await _hear(events, EventKind.RESYNC)
    ref = await boxes.launch("sleep", "60")
    await _hear(events, EventKind.STARTED)
    await asyncio.to_thread(daemon.stop)
    with pytest.raises(EngineUnavailable):
        await boxes.engine.inspect(ref)
    await asyncio.to_thread(daemon.start)
    await _hear(events, EventKind.RESYNC)
    status = await boxes.engine.inspect(ref)
    assert (status.state, status.ran_out_of_memory) == (SandboxState.EXITED, False)
    assert (await boxes.run("true"))[0].exit_code == 0
    await boxes.remove_all()
    await boxes.engine.close()


async def test_a_call_that_is_called_off_as_its_answer_comes_ends_as_called_off(
    daemon: PrivateDaemon,
) -> None:
    """BR-114: else whoever waits for its end, such as a supervisor that closes, waits for ever."""
    engine = patient_engine(daemon.endpoint)
    await engine.describe()
    for turns in range(200):
        answered = threading.Event()
        asking = asyncio.ensure_future(engine.connection.quick(lambda _api, told=answered: told.set()))
        await asyncio.to_thread(answered.wait, 60.0)
        for _ in range(turns % 5):
            await asyncio.sleep(0)
        if asking.cancel():
            with pytest.raises(asyncio.CancelledError):
                await asking
    await engine.close()


async def test_a_frozen_engine_fails_in_time_and_works_again_when_thawed(
    daemon: PrivateDaemon,
) -> None:
    """BR-103 (c), BR-114: stopped with SIGSTOP, as a machine under pressure does it."""
    engine = DockerEngine(daemon.endpoint, quick_s=5.0)
    await engine.describe()
    pid = daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(30):  # a launch may take 60 s
        with pytest.raises(EngineUnavailable, match="did not answer"):
            await engine.launch(_any_spec())
    os.kill(pid, signal.SIGCONT)
    assert (await engine.describe()).name == "docker"
    await engine.close()


async def test_a_private_engine_stops_by_its_pid_with_everything_on_it(daemon: PrivateDaemon) -> None:
    pid = daemon.pid()
    assert pid is not None
    assert daemon.start() == daemon.endpoint  # again: the same one
    assert daemon.pid() == pid
    await asyncio.to_thread(daemon.stop)
    assert daemon.pid() is None
    assert not alive(pid)
    daemon.stop()
    shutil.rmtree(daemon.directory)


async def _hear(events: AsyncIterator[object], kind: EventKind) -> None:
    async with asyncio.timeout(60):
        async for event in events:
            if getattr(event, "kind", None) is kind:
                return


async def _is_unavailable(path: Path, text: str) -> None:
    engine = DockerEngine(f"unix://{path}")
    async with asyncio.timeout(20):
        with pytest.raises(EngineUnavailable, match=text):
            await engine.launch(_any_spec())
        with pytest.raises(EngineUnavailable, match=text):
            await engine.describe()
    await engine.close()


def _as_nobody(path: Path) -> int:
    """In a child process: 0 when the refusal is told as it should be."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    try:
        connect(f"unix://{path}", 1.0)
    except EngineUnavailable as error:
        return 0 if "permission denied" in error.message and "usermod" in error.message else 1
    return 2


def _any_spec() -> SandboxSpec:
    return Sandboxes(FakeEngine(), "portside-worker:any").spec(("true",))


def _volumes(api: Any, ref: SandboxRef) -> list[object]:
    return api.volumes(filters={"label": f"portside.sandbox={ref.name}"})["Volumes"] or []
