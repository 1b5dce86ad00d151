"""The adapter's pure parts: what the engine says, what it is told, where it is looked for."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from docker.errors import APIError

from container.adapters.docker.api import Json
from container.adapters.docker.description import allowed_cpus, describe
from container.adapters.docker.faults import words
from container.adapters.docker.inspect import inspect
from container.adapters.docker.isolation import create_arguments, host_config, seccomp_profile
from container.adapters.docker.output import frames
from container.adapters.docker.status import LABEL, event_of, status_of
from container.adapters.docker.volumes import abandoned
from container.engine.errors import LimitNotEnforceable
from container.engine.sandbox import EventKind, Limits, SandboxEvent, SandboxSpec, SandboxState

INFO: Json = {
    "NCPU": 4,
    "MemoryLimit": True,
    "SwapLimit": True,
    "CpuCfsQuota": True,
    "PidsLimit": True,
    "SecurityOptions": ["name=seccomp,profile=default"],
    "LiveRestoreEnabled": True,
}
VERSION: Json = {"Version": "20.10.24", "Components": [{"Name": "Engine"}]}


def inspected(**state: Any) -> Json:
    return {
        "Id": "abc",
        "Name": "/portside-j-1",
        "Config": {"Labels": {"portside.job": "j"}},
        "State": {"Status": "exited", "Running": False, "ExitCode": 0, **state},
    }


def spec(**changes: Any) -> SandboxSpec:
    settings: dict[str, Any] = {
        "name": "portside-j-1",
        "image": "i",
        "command": ("true",),
        "labels": {"portside.job": "j"},
        "socket_dir": Path("/run/portside/i/j"),
        "deadline_s": 3600.0,
    }
    return SandboxSpec(**(settings | changes))


# --- what the engine says ---


@pytest.mark.parametrize(
    ("exit_code", "flag", "expected"), [(137, True, True), (137, False, False), (0, True, False)]
)
def test_out_of_memory_needs_the_exit_code_and_the_flag(exit_code: int, flag: bool, expected: bool) -> None:
    """BR-105: an exit of 137 alone is any SIGKILL, the flag alone is any child."""
    status = status_of(inspected(ExitCode=exit_code, OOMKilled=flag))
    assert status.ran_out_of_memory is expected


@pytest.mark.parametrize(
    ("word", "running", "state"),
    [
        ("created", False, SandboxState.CREATED),
        ("running", True, SandboxState.RUNNING),
        ("paused", True, SandboxState.PAUSED),
        ("removing", False, SandboxState.EXITED),
        ("dead", False, SandboxState.EXITED),
        ("stopping", True, SandboxState.RUNNING),
        ("stopped", False, SandboxState.EXITED),
    ],
)
def test_every_word_of_the_engine_has_a_state(word: str, running: bool, state: SandboxState) -> None:
    """BR-113: a word that is not known goes by whether something runs, never by hope."""
    assert status_of(inspected(Status=word, Running=running)).state is state


def test_an_exit_code_is_only_told_of_what_has_ended() -> None:
    assert status_of(inspected(Status="created", ExitCode=127, Error="no such file")).exit_code is None
    assert status_of(inspected(Status="running", Running=True)).exit_code is None


def test_times_are_read_to_the_microsecond_and_zero_is_none() -> None:
    status = status_of(
        inspected(StartedAt="2026-01-02T03:04:05.678901234Z", FinishedAt="0001-01-01T00:00:00Z")
    )
    assert status.started_at is not None
    assert status.started_at.isoformat() == "2026-01-02T03:04:05.678901+00:00"
    assert status.finished_at is None


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("start", EventKind.STARTED),
        ("die", EventKind.EXITED),
        ("oom", EventKind.OOM),
        ("destroy", EventKind.REMOVED),
        ("exec_start", None),
    ],
)
def test_events_of_sandboxes_are_told_and_no_others(action: str, kind: EventKind | None) -> None:
    message = {"Action": action, "Actor": {"Attributes": {"portside.sandbox": "s", "name": "x"}}}
    assert event_of(message) == (SandboxEvent(kind, "s") if kind else None)
    assert event_of({"Action": action, "Actor": {"Attributes": {"name": "foreign"}}}) is None


@pytest.mark.parametrize("cut", [1, 3, 8, 9, 1000])
def test_frames_are_put_together_however_the_stream_is_cut(cut: int) -> None:
    payloads = [b"one", b"", b"two" * 100, b"3"]
    stream = b"".join(struct.pack(">BxxxL", 1, len(payload)) + payload for payload in payloads)
    chunks = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    assert b"".join(frames(chunks)) == b"".join(payloads)


# --- what the engine is told ---


def test_the_create_call_carries_the_whole_default_isolation() -> None:
    """06-containers.md, default isolation."""
    config = host_config(spec(), cpus=1.5, api_version="1.41")
    assert config["NetworkMode"] == "none"
    assert config["ReadonlyRootfs"] is True
    assert config["CapDrop"] == ["ALL"]
    assert config["SecurityOpt"] == ["no-new-privileges:true", f"seccomp={seccomp_profile()}"]
    assert config["Init"] is True
    assert config["PidsLimit"] == 512
    assert config["Memory"] == config["MemorySwap"] == 2 * 1024**3
    assert config["NanoCpus"] == 1_500_000_000
    assert config["ShmSize"] == 64 * 1024**2
    assert config["RestartPolicy"] == {"Name": "no"}
    assert config["LogConfig"]["Config"] == {"max-size": str(5 * 1024**2), "max-file": "2"}
    assert not config.get("AutoRemove")
    assert not config.get("Privileged")
    assert not config.get("Binds")
    mounts = {mount["Target"]: mount for mount in config["Mounts"]}
    assert mounts.keys() == {"/workspace", "/state", "/run/portside"}
    assert mounts["/run/portside"]["Type"] == "bind"
    assert mounts["/run/portside"]["ReadOnly"] is True
    assert mounts["/workspace"]["Source"] is None


def test_every_command_runs_under_a_deadline_of_its_own() -> None:
    arguments = create_arguments(spec(command=("python", "-m", "worker"), stop_grace_s=20.0))
    assert arguments["entrypoint"] == ["timeout", "-k", "20", "3600"]
    assert arguments["command"] == ["python", "-m", "worker"]
    assert arguments["user"] == "1000:1000"
    assert arguments["use_config_proxy"] is False


def test_container_and_volumes_carry_every_label() -> None:
    """BR-098: labels on every resource."""
    expected = {"portside.job": "j", "portside.sandbox": "portside-j-1"}
    assert create_arguments(spec())["labels"] == expected
    mounts = host_config(spec(), cpus=1, api_version="1.41")["Mounts"]
    assert [mount["VolumeOptions"]["Labels"] for mount in mounts if mount["Type"] == "volume"] == [
        expected
    ] * 2


def test_the_filter_allows_by_name_and_names_nothing_dangerous() -> None:
    profile: Json = json.loads(seccomp_profile())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    rules: list[Json] = profile["syscalls"]
    allowed = [rule for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule]
    free: set[str] = {name for rule in allowed for name in rule["names"]}
    dangerous = (
        "acct add_key bpf chroot clock_settime clone clone3 delete_module fanotify_init finit_module"
        " fsmount fsopen init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp"
        " kexec_load keyctl lookup_dcookie mount mount_setattr move_mount name_to_handle_at"
        " open_by_handle_at open_tree perf_event_open personality pidfd_getfd pivot_root"
        " process_vm_readv process_vm_writev ptrace quotactl reboot request_key setns settimeofday"
        " socket swapon syslog umount2 unshare userfaultfd"
    )
    assert free.isdisjoint(dangerous.split())


# --- what the engine can hold ---


def test_an_engine_with_everything_leaves_only_the_disk_unlimited() -> None:
    description = describe("unix:///s", INFO, VERSION)
    assert (description.name, description.version, description.cpus) == ("docker", "20.10.24", 4)
    assert description.unenforced.keys() == {"disk_bytes"}
    assert description.notes == ()


def test_rootless_podman_on_the_first_control_groups_is_not_believed_about_limits() -> None:
    """It says that it has them, and a fork bomb is not held."""
    podman = {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]}
    rootless: Json = {**INFO, "Rootless": True, "CgroupVersion": "1"}
    description = describe("unix:///s", rootless, podman)
    assert description.unenforced.keys() == {"disk_bytes", "nofile", "memory_bytes", "cpus", "pids"}
    assert any("rootless" in note for note in description.notes)
    newer = describe("unix:///s", {**rootless, "CgroupVersion": "2"}, podman)
    assert newer.unenforced.keys() == {"disk_bytes", "nofile"}


def test_what_an_engine_lacks_is_said_and_refused_when_asked_for() -> None:
    info: Json = {**INFO, "PidsLimit": False, "CpuCfsQuota": False, "SwapLimit": False, "SecurityOptions": []}
    podman = {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]}
    description = describe("unix:///s", info, podman)
    assert description.name == "podman"
    assert description.unenforced.keys() == {"disk_bytes", "pids", "cpus"}
    assert any("seccomp" in note for note in description.notes)
    assert any("swap" in note for note in description.notes)
    assert any("out-of-memory flag" in note for note in description.notes)
    assert allowed_cpus(Limits(), description) == 2.0
    with pytest.raises(LimitNotEnforceable, match="pids"):
        allowed_cpus(Limits(pids=10, explicit=frozenset({"pids"})), description)


def test_default_cpus_are_lowered_to_the_engine_and_explicit_ones_refused() -> None:
    one = describe("unix:///s", {**INFO, "NCPU": 1}, VERSION)
    assert allowed_cpus(Limits(), one) == 1.0
    with pytest.raises(LimitNotEnforceable, match="cpus: 2 were asked for and the engine has 1"):
        allowed_cpus(Limits(cpus=2.0, explicit=frozenset({"cpus"})), one)


def test_volumes_of_no_sandbox_are_abandoned_unless_one_is_just_being_made_for_them() -> None:
    """BR-098: an orchestrator was killed between a sandbox's volumes and the sandbox. Both engines' times."""
    volumes: list[Json] = [
        {"Name": "lost", "Labels": {LABEL: "gone"}, "CreatedAt": "2026-01-01T00:00:00Z"},
        {"Name": "lost too", "Labels": {LABEL: "gone"}, "CreatedAt": "2026-01-01T01:00:00.123456789+01:00"},
        {"Name": "used", "Labels": {LABEL: "here"}, "CreatedAt": "2026-01-01T00:00:00Z"},
        {"Name": "fresh", "Labels": {LABEL: "coming"}, "CreatedAt": "2026-01-01T00:05:00Z"},
    ]
    now = datetime(2026, 1, 1, 0, 11, tzinfo=UTC)
    assert abandoned(volumes, {"here"}, now) == ["lost", "lost too"]


def test_a_full_disk_of_the_engine_is_said_with_what_to_do() -> None:
    error = APIError("500", explanation="write /x/.tmp-config.v2.json178: no space left on device")
    assert words(error).startswith("the engine's disk is full: make room")


class EndsMeanwhile:
    """Refuses a number of looks, in these words."""

    def __init__(self, refusals: int, said: str) -> None:
        self.refusals = refusals
        self._said = said

    def inspect_container(self, container: str) -> Json:
        self.refusals -= 1
        if self.refusals >= 0:
            response = requests.Response()
            response.status_code = 500
            raise APIError("500", response=response, explanation=self._said)
        return {"Id": container}


def test_a_container_that_ends_while_podman_looks_is_looked_at_again() -> None:
    ending = EndsMeanwhile(2, "read /proc/13086/cgroup: no such process")
    assert inspect(ending, "abc") == {"Id": "abc"}
    for always in (EndsMeanwhile(1, "disk is broken"), EndsMeanwhile(100, "read: no such process")):
        with pytest.raises(APIError):
            inspect(always, "abc")
        assert always.refusals in {0, 95}
