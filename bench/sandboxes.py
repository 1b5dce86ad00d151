"""`python -m bench.sandboxes`: what a sandbox costs, against `docker run --rm IMAGE true` in the same run.

Jobs run as they do for a user: `portside serve`, its API, real containers, a scripted model.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

_CROWD = 20
_IDLE_JOBS = 8
_IDLE_S = 10.0
_DEADLINE_S = 300.0
_ENDED = {"completed", "failed", "cancelled", "timed_out", "lost"}
_DONE = {"tool": "finish", "arguments": {"success": True, "summary": "done"}}
_AT_ONCE = {"turns": [{"call": [_DONE]}]}
_IDLE = {"turns": [{"call": [{"tool": "shell", "arguments": {"command": "sleep 600"}}]}, {"call": [_DONE]}]}


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured; every time is a median of the repetitions.

    Attributes:
        run_true_s: `docker run --rm IMAGE true`, with no network.
        first_request_s: from a job's acceptance to its first model request.
        whole_job_s: from there to its end.
        crowd_s: until the last of `crowd` jobs, accepted at once, has ended.
        cores: of this machine.
        container_mb: what an idle job's container holds, without files that can be dropped.
        orchestrator_mb: by how much the orchestrator grew for each idle job.
        orchestrator_cpu: seconds of CPU for a second of an idle job.
    """

    run_true_s: float
    first_request_s: float
    whole_job_s: float
    crowd: int
    crowd_s: float
    cores: int
    container_mb: float
    orchestrator_mb: float
    orchestrator_cpu: float

    @property
    def ratios(self) -> dict[str, float]:
        """What can be compared between machines."""
        ideal = self.crowd * self.whole_job_s / self.cores
        return {
            "first model request / docker run true": self.first_request_s / self.run_true_s,
            f"{self.crowd} jobs at once / ideal": self.crowd_s / ideal,
        }


class Service:
    """A running orchestrator, worked over its API."""

    def __init__(self, home: Path, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        token = (home / "operator.token").read_text().strip()
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(home / "api.sock")),
            base_url="http://portside/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60.0,
        )

    def start(self, script: Path) -> str:
        """Accept a job."""
        body = {"task": "measure", "model": f"scripted:{script}"}
        return str(self._http.post("/jobs", json=body).raise_for_status().json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """The job as the API shows it."""
        return self._http.get(f"/jobs/{job_id}").raise_for_status().json()

    def ended(self, job_id: str) -> dict[str, Any]:
        """Wait for its end."""
        _until(lambda: self.job(job_id)["state"] in _ENDED)
        job = self.job(job_id)
        if job["state"] != "completed":
            raise RuntimeError(f"job {job_id} {job['state']}: {job['reason']}")
        return job

    def event(self, job_id: str, kind: str) -> datetime | None:
        """When the first event of a kind happened."""
        events = self._http.get(f"/jobs/{job_id}/events").raise_for_status().json()
        return next((datetime.fromisoformat(one["at"]) for one in events if one["type"] == kind), None)

    def cancel(self, job_id: str) -> None:
        """Ask it to end."""
        self._http.post(f"/jobs/{job_id}/cancel").raise_for_status()

    def resident_mb(self) -> float:
        """Of its process."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def cpu_s(self) -> float:
        """Of its process, until now."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(home: Path) -> Generator[Service]:
    """An orchestrator of this run alone."""
    environment = {**os.environ, "PORTSIDE_HOME": str(home), "PORTSIDE_MAX_RUNNING_JOBS": str(_CROWD)}
    command = [sys.executable, "-m", "orchestrator.cli.main"]
    subprocess.run([*command, "image", "build"], env=environment, check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(
        [*command, "serve"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _until((home / "api.sock").exists)
        yield Service(home, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def measure(repetitions: int) -> Costs:
    """All of it, in one run."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="psb-")))
        scripts = {name: place / f"{name}.yaml" for name in ("at-once", "idle")}
        for file, script in zip(scripts.values(), (_AT_ONCE, _IDLE), strict=True):
            file.write_text(json.dumps(script))
        service = stack.enter_context(serving(place / "home"))
        image = _image(place / "home")
        service.ended(service.start(scripts["at-once"]))  # the first pays for what all share
        bare: list[float] = []
        first: list[float] = []
        whole: list[float] = []
        for _ in range(repetitions):  # in turn: what disturbs one disturbs both
            bare.append(_timed(lambda: _docker("run", "--rm", "--network", "none", image, "true")))
            job = service.ended(service.start(scripts["at-once"]))
            accepted = datetime.fromisoformat(job["created_at"])
            asked = service.event(job["id"], "contract")
            assert asked is not None
            first.append((asked - accepted).total_seconds())
            whole.append((datetime.fromisoformat(job["finished_at"]) - accepted).total_seconds())
        return Costs(
            statistics.median(bare),
            statistics.median(first),
            statistics.median(whole),
            _CROWD,
            _crowd(service, scripts["at-once"]),
            len(os.sched_getaffinity(0)),
            *_idle(service, scripts["idle"]),
        )


def _crowd(service: Service, script: Path) -> float:
    jobs = [service.ended(job_id) for job_id in [service.start(script) for _ in range(_CROWD)]]
    accepted = min(datetime.fromisoformat(job["created_at"]) for job in jobs)
    return (max(datetime.fromisoformat(job["finished_at"]) for job in jobs) - accepted).total_seconds()


def _idle(service: Service, script: Path) -> tuple[float, float, float]:
    before_mb = service.resident_mb()
    jobs = [service.start(script) for _ in range(_IDLE_JOBS)]
    _until(lambda: all(service.event(job_id, "tool_use") for job_id in jobs))
    _until(lambda: len(_containers()) >= _IDLE_JOBS)
    cpu_s, began = service.cpu_s(), time.perf_counter()
    threading.Event().wait(_IDLE_S)
    cpu = (service.cpu_s() - cpu_s) / (time.perf_counter() - began) / _IDLE_JOBS
    grown_mb = (service.resident_mb() - before_mb) / _IDLE_JOBS
    container_mb = statistics.median(_held_mb(container) for container in _containers())
    for job_id in jobs:
        service.cancel(job_id)
    _until(lambda: all(service.job(job_id)["state"] in _ENDED for job_id in jobs))
    return container_mb, grown_mb, cpu


def _containers() -> list[str]:
    return _docker("ps", "--quiet", "--no-trunc", "--filter", "label=io.portside.job").split()


def _held_mb(container: str) -> float:
    """Memory of its control group without the page cache, on either version of control groups."""
    pid = _docker("inspect", "--format", "{{.State.Pid}}", container).strip()
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    groups = {part[1]: part[2] for part in (line.split(":", 2) for line in lines)}
    if "memory" in groups:
        folder, names = Path("/sys/fs/cgroup/memory") / groups["memory"].lstrip("/"), ("total_rss",)
    else:
        folder, names = Path("/sys/fs/cgroup") / groups[""].lstrip("/"), ("anon",)
    stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    return sum(int(stat[name]) for name in names) / 1e6


def _image(home: Path) -> str:
    environment = {**os.environ, "PORTSIDE_HOME": str(home)}
    command = [sys.executable, "-m", "orchestrator.cli.main", "image", "list", "--json"]
    listed = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return next(str(one["tag"]) for one in listed if not one["stale"])


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _until(holds: Callable[[], object]) -> None:
    pause = threading.Event()
    deadline = time.monotonic() + _DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_DEADLINE_S:g} s")
        pause.wait(0.05)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench sandboxes", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args(arguments)
    costs = measure(given.repetitions)
    figures = {**asdict(costs), **costs.ratios, "load": os.getloadavg()[0]}
    for name, value in figures.items():
        print(f"{name:<40} {value:10.4g}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
