"""PD-52: orchestrator, engine, database and disk fail in the middle of jobs, for real, and come back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from container.adapters.docker.private_daemon import PrivateDaemon
from tests.support.command_line import CommandLine
from tests.support.homes import remove_sockets
from tests.support.postgres import PostgresServer
from tests.support.service import Service, ended, serving

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(400)]

RECOVERED = "; its changes were recovered"
# Each run of a command leaves one line behind.
RUNS = "echo run >> runs; "


def command_job(service: Service, command: str, **asked: Any) -> str:
    return service.ask("POST", "jobs", {"task": "t", "command": command, **asked})["id"]


def runs_in(service: Service, job_id: str) -> int:
    return service.ask("GET", f"jobs/{job_id}/diff").count("+run\n")


def running(job: dict[str, Any]) -> bool:
    return job["state"] == "running"


def containers(endpoint: str) -> Any:
    # A container's end waits until its disks are written, which other work on the machine holds up.
    return docker.APIClient(base_url=endpoint, version="auto", timeout=300)


def printed(service: Service, job_id: str) -> bool:
    return bool(service.events(job_id, "output"))


def test_every_kind_of_job_gets_over_the_kill_of_its_orchestrator(
    command_line: CommandLine, docker_endpoint: str
) -> None:
    """BR-098: waiting, at work, handing over, and killed while nobody looked; each runs once."""
    command_line = replace(
        command_line, environment={**command_line.environment, "PORTSIDE_MAX_RUNNING_JOBS": "3"}
    )
    with serving(command_line) as service:
        works = command_job(service, RUNS + "echo ready; sleep 12; echo more >> runs")
        dies = command_job(service, RUNS + "echo ready; sleep 300")
        hands_over = command_job(service, RUNS + "head -c 48M /dev/urandom > large")
        waits = command_job(service, RUNS)
        for job_id in (works, dies):
            service.until(job_id, lambda _, job_id=job_id: printed(service, job_id))
        service.until(hands_over, lambda _: uploading(command_line.home))
        service.kill()
        engine = containers(docker_endpoint)
        engine.kill(f"portside-{dies}-1", "SIGKILL")
        engine.close()
        service.start()
        jobs = {job_id: service.until(job_id, ended) for job_id in (works, dies, hands_over, waits)}
        assert [job["state"] for job in jobs.values()] == ["completed", "failed", "completed", "completed"]
        assert jobs[dies]["reason"] == "killed (SIGKILL), not by its memory limit" + RECOVERED
        assert {job["attempt"] for job in jobs.values()} == {1}
        assert [runs_in(service, job_id) for job_id in jobs] == [1, 1, 1, 1]
        assert jobs[hands_over]["changes_bytes"] > 48 * 1024**2
        assert "+more" in service.ask("GET", f"jobs/{works}/diff")
    assert command_line.containers() == []
    assert not list((command_line.home / "cache" / "recovery").glob("*"))


def uploading(home: Path) -> bool:
    """A patch is on its way: a part of it has been written, beside."""
    drafts = list((home / "blobs" / "drafts").glob("*"))
    return any(path.stat().st_size > 1_000_000 for path in drafts if path.exists())


@pytest.fixture
def own_engine(docker_endpoint: str, worker_image: str) -> Iterator[PrivateDaemon]:
    """A daemon that may be killed, with the worker image."""
    folder = Path("/tmp") / f"portside-own-{worker_image[-6:]}"
    daemon = PrivateDaemon(folder)
    endpoint = daemon.start()
    try:
        source, target = containers(docker_endpoint), containers(endpoint)
        target.load_image(source.get_image(worker_image))
        source.close()
        target.close()
        yield daemon
    finally:
        daemon.start()  # whatever a killed one left is taken over, and ended
        daemon.stop()
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_killed_engine_loses_no_job_s_changes(command_line: CommandLine, own_engine: PrivateDaemon) -> None:
    """BR-103 (d): what it ran is ended and recovered when it is back, and new jobs run without a restart."""
    environment = {**command_line.environment, "PORTSIDE_ENGINE_URL": own_engine.endpoint}
    command_line = replace(command_line, environment=environment)
    with serving(command_line) as service:
        job_id = command_job(service, RUNS + "echo ready; sleep 300")
        service.until(job_id, lambda _: printed(service, job_id))
        pid = own_engine.pid()
        assert pid is not None
        subprocess.run(["kill", "-9", str(pid)], check=True)
        service.until(job_id, running)
        own_engine.start()
        job = service.until(job_id, ended)
        assert job["state"] in {"lost", "failed", "cancelled"}, job
        assert job["attempt"] == 1
        assert runs_in(service, job_id) == 1
        again = command_job(service, RUNS)
        assert service.until(again, ended)["state"] == "completed"
        service.until(again, lambda _: command_line.containers() == [])


@pytest.mark.postgres
def test_a_database_that_goes_away_and_comes_back_costs_no_job(
    command_line: CommandLine, postgres_server: PostgresServer
) -> None:
    """The worker waits; what it was told "ok" for is there afterwards, once."""
    name = postgres_server.create()
    environment = {**command_line.environment, "PORTSIDE_DATABASE_URL": postgres_server.url(name)}
    with serving(replace(command_line, environment=environment)) as service:
        job_id = command_job(service, RUNS + "for i in 1 2 3 4 5 6; do echo line $i; sleep 1; done")
        service.until(job_id, lambda _: printed(service, job_id))
        with postgres_server.away():
            service.until_it_fails("GET", f"jobs/{job_id}")
        job = service.until(job_id, ended)
        assert (job["state"], job["attempt"], runs_in(service, job_id)) == ("completed", 1, 1)
        lines = "".join(one["text"] for one in service.events(job_id, "output"))
        assert lines == "".join(f"line {number}\n" for number in range(1, 7))
    postgres_server.drop(name)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that can be filled."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(file: Path) -> None:
    """Write until there is no room."""
    with file.open("wb", buffering=0) as out:
        for size in (65_536, 512, 1):
            with suppress(OSError):
                while out.write(b"x" * size) == size:
                    pass


def test_a_full_disk_under_the_state_directory_holds_a_job_s_end_up_and_loses_nothing(
    command_line: CommandLine, small_disk: Path, docker_endpoint: str
) -> None:
    """BR-106: new jobs are refused with the reason; what had been accepted goes on when there is room again."""
    command_line = replace(command_line, home=small_disk / "home")
    filling = small_disk / "filling"
    with serving(command_line) as service:
        job_id = command_job(
            service, RUNS + "head -c 8M /dev/urandom > large; sync large runs; echo ready; sleep 300"
        )
        service.until(job_id, lambda _: printed(service, job_id))
        fill(filling)
        refused = service.refusal("POST", "jobs", {"task": "t", "command": "true"})
        assert (refused["status"], refused["retryable"]) == (503, True), refused
        assert "the disk is full" in refused["detail"]
        engine = containers(docker_endpoint)
        engine.kill(f"portside-{job_id}-1", "SIGKILL")
        engine.wait(f"portside-{job_id}-1")
        service.until(job_id, lambda _: "there is no room" in service.log() or "disk" in service.log())
        assert service.ask("GET", f"jobs/{job_id}")["finished_at"] is None
        engine.inspect_container(f"portside-{job_id}-1")  # it is kept until its changes are safe
        engine.close()
        filling.unlink()
        job = service.until(job_id, ended)
        assert job["reason"] == "killed (SIGKILL), not by its memory limit" + RECOVERED
        assert runs_in(service, job_id) == 1
        assert service.until(command_job(service, "true"), ended)["state"] == "completed"
    remove_sockets(command_line.home)
