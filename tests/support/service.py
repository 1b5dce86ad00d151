"""A `portside serve` of its own, its API, and its end by force."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.command_line import CommandLine


class Service:
    """A `portside serve` of one home, and its API."""

    def __init__(self, command_line: CommandLine) -> None:
        self._command_line = command_line
        self._process: subprocess.Popen[str] | None = None
        self._log = Path(tempfile.mkdtemp(prefix="portside-log-")) / "log"

    def start(self) -> None:
        self._process = self._command_line.start("serve", "--json", log=self._log)
        assert self._process.stdout is not None
        assert "listening" in json.loads(self._process.stdout.readline() or "{}")

    def kill(self) -> None:
        """As kill -9 does."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=30)

    def stop(self) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
            self._process.communicate(timeout=60)
        shutil.rmtree(self._log.parent)

    def ask(self, method: str, path: str, body: Any = None, content: bytes | None = None) -> Any:
        answer = self._send(method, path, body, content)
        assert answer.is_success, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    def _send(self, method: str, path: str, body: Any = None, content: bytes | None = None) -> httpx.Response:
        home = self._command_line.home
        transport = httpx.HTTPTransport(uds=str(home / "api.sock"))
        token = (home / "operator.token").read_text().strip()
        with httpx.Client(transport=transport, base_url="http://portside", timeout=30) as http:
            headers = {"Authorization": f"Bearer {token}"}
            return http.request(method, f"/api/v1/{path}", json=body, content=content, headers=headers)

    def refusal(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The problem that it answers with."""
        answer = self._send(method, path, body)
        assert not answer.is_success, answer.text
        return answer.json()

    def until_it_fails(self, method: str, path: str, within_s: float = 60.0) -> None:
        end = time.monotonic() + within_s
        while self._send(method, path).is_success:
            assert time.monotonic() < end
            threading.Event().wait(0.05)  # as below

    def log(self) -> str:
        """What it has logged up to now."""
        return self._log.read_text() if self._log.exists() else ""

    def upload(self, **files: str) -> str:
        """A workspace of these files; answers its sha256."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
        return self.ask("PUT", "workspaces", content=packed.getvalue())["sha256"]

    def run(self, script: Path, **asked: Any) -> str:
        return self.ask("POST", "jobs", {"task": "t", "model": f"scripted:{script}", **asked})["id"]

    def until(
        self, job_id: str, holds: Callable[[dict[str, Any]], bool], within_s: float = 90.0
    ) -> dict[str, Any]:
        end = time.monotonic() + within_s
        while not holds(job := self.ask("GET", f"jobs/{job_id}")):
            assert time.monotonic() < end, job
            threading.Event().wait(0.05)  # another process has no event to wait for
        return job

    def events(self, job_id: str, kind: str) -> list[dict[str, Any]]:
        return [one["data"] for one in self.ask("GET", f"jobs/{job_id}/events") if one["type"] == kind]


def ended(job: dict[str, Any]) -> bool:
    return job["finished_at"] is not None


@contextmanager
def serving(command_line: CommandLine) -> Generator[Service]:
    service = Service(command_line)
    service.start()
    try:
        yield service
    finally:
        service.stop()
