"""A Docker daemon of one's own, for a machine where none answers: started by root, stopped by its pid.

It shares nothing with another daemon on the machine: own socket, data, run-time directory, pid file, and own
containerd namespaces (a daemon that finds the system's containerd running uses it, so without these two
daemons would see each other's containers). It touches no firewall rule and makes no bridge: sandboxes have no
network.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from container.adapters.docker.connection import connect
from container.adapters.docker.packages import how_to_install
from container.engine.errors import EngineUnavailable

START_S = 60.0
STOP_S = 30.0
_POLL_S = 0.05
_LONGEST_SOCKET_PATH = 107


class PrivateDaemon:
    """A dockerd whose every file lies under one directory. All methods block."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.socket = self.directory / "docker.sock"
        self._pid_file = self.directory / "docker.pid"
        self._settings = self.directory / "daemon.json"
        self._log = self.directory / "dockerd.log"

    @property
    def endpoint(self) -> str:
        """Where it answers."""
        return f"unix://{self.socket}"

    @property
    def stop_command(self) -> str:
        """What a person types to end it."""
        return f"kill $(cat {self._pid_file})"

    def start(self, deadline_s: float = START_S) -> str:
        """Start it, unless it runs, and wait until it answers; it stays when this process ends.

        Returns:
            Its endpoint.

        Raises:
            EngineUnavailable: it can't be started here, or did not come up; the message says what to type.
        """
        if self.pid() is not None:
            self._wait_for_answer(deadline_s, lambda: self.pid() is not None)
            return self.endpoint
        self._refuse_if_impossible()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._settings.write_text(json.dumps({"runtimes": _runtimes()}))
        self._pid_file.unlink(missing_ok=True)  # of a daemon that died: dockerd would refuse a reused number
        self._forget_dead_containerd()
        started = self._launch()
        try:
            self._wait_for_answer(deadline_s, lambda: _runs(started))
        except EngineUnavailable:
            with suppress(ProcessLookupError):  # what comes up too late must not stay unnoticed
                os.kill(started, signal.SIGTERM)
            _until(lambda: not _runs(started), STOP_S)
            raise
        return self.endpoint

    def _forget_dead_containerd(self) -> None:
        """Dockerd waits in vain for one that was killed with it and that nobody has reaped."""
        pid_file = self.directory / "run" / "containerd" / "containerd.pid"
        try:
            pid = int(pid_file.read_text())
        except (OSError, ValueError):
            return
        if not _runs(pid):
            pid_file.unlink()

    def _launch(self) -> int:
        """Start it as no child of this process, which it outlives; answers its pid."""
        detach = 'log="$1"; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
        command = ["/bin/sh", "-c", detach, "sh", str(self._log), *self._command()]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, start_new_session=True)
        return int(done.stdout)

    def stop(self, deadline_s: float = STOP_S) -> None:
        """End it and every container on it; stopping twice is fine.

        Raises:
            EngineUnavailable: it still runs after `deadline_s`.
        """
        pid = self.pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        if not _until(lambda: not _runs(pid), deadline_s):  # its pid file goes before it does
            raise EngineUnavailable(f"the private engine (pid {pid}) did not stop; see {self._log}")
        self._unmount()

    def pid(self) -> int | None:
        """Its process, checked to be really this daemon and not a later one with the same number."""
        try:
            pid = int(self._pid_file.read_text())
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        ours = f"--pidfile={self._pid_file}".encode() in arguments
        return pid if ours and _runs(pid) else None

    def _refuse_if_impossible(self) -> None:
        if os.geteuid() != 0:
            raise EngineUnavailable(
                "no container engine answers, and starting one needs root. Type: sudo portside doctor --fix"
            )
        if shutil.which("dockerd") is None:
            raise EngineUnavailable(f"dockerd is not installed. {how_to_install('docker.io')}")
        if len(str(self.socket)) > _LONGEST_SOCKET_PATH:
            raise EngineUnavailable(
                f"{self.socket} is too long for a socket; set PORTSIDE_HOME to a shorter path"
            )

    def _command(self) -> list[str]:
        namespace = "portside-" + hashlib.sha256(str(self.directory).encode()).hexdigest()[:8]
        return [
            "dockerd",
            f"--host={self.endpoint}",
            f"--data-root={self.directory / 'data'}",
            f"--exec-root={self.directory / 'run'}",
            f"--pidfile={self._pid_file}",
            f"--config-file={self._settings}",
            f"--containerd-namespace={namespace}",
            f"--containerd-plugins-namespace={namespace}-plugins",
            "--bridge=none",
            "--iptables=false",
            "--ip-forward=false",
            "--ip-masq=false",
        ]

    def _wait_for_answer(self, deadline_s: float, runs: Callable[[], bool]) -> None:
        def ready() -> bool:
            if not runs():
                raise EngineUnavailable(f"dockerd ended at once: {self._last_words()}")
            try:
                connect(self.endpoint, _POLL_S * 100).close()
            except EngineUnavailable:
                return False
            return True

        if not _until(ready, deadline_s):
            raise EngineUnavailable(
                f"the private engine did not answer within {deadline_s:g} s: {self._last_words()}"
            )

    def _unmount(self) -> None:
        """Dockerd leaves its network namespace mounted; with it the directory could not be removed."""
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        for mount in sorted((m for m in mounts if Path(m).is_relative_to(self.directory)), reverse=True):
            subprocess.run(["umount", mount], check=False, capture_output=True, timeout=10)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (more in {self._log})"


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _until(true: Callable[[], bool], deadline_s: float) -> bool:
    deadline = time.monotonic() + deadline_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)  # noqa: TID251 -- blocking by contract; nothing announces that a daemon is up
    return True


def _runtimes() -> dict[str, dict[str, object]]:
    """GVisor, where it is installed: with no network, and with sockets of the host as the way home."""
    runsc = shutil.which("runsc")
    return {"runsc": {"path": runsc, "runtimeArgs": ["--network=none", "--host-uds=open"]}} if runsc else {}
