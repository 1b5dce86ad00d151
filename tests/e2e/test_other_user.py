"""An orchestrator that is not root: files of a job belong to its user, and nothing is left (BR-100)."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient

from orchestrator.services.launching import LABEL_INSTANCE
from tests.support.command_line import ROOT, CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(200)]

USER = 1001
SCRIPT = ROOT / "examples" / "scripts" / "broken-calculator.yaml"
WRITES = "mkdir -p out/ro && echo a > out/a.txt && echo b > out/ro/b && chmod 0555 out/ro && git config --global x.y z"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of that user's, below nothing that only root may enter."""
    with tempfile.TemporaryDirectory() as made:
        os.chown(made, USER, USER)
        yield Path(made)


def _as_user(command_line: CommandLine, place: Path, endpoint: str) -> CommandLine:
    """The same command line for a user without a name, who may use the engine and read the sources."""
    engine_group = Path(endpoint.removeprefix("unix://")).stat().st_gid
    become = ("setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={engine_group}")
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    environment = {**command_line.environment, "HOME": str(place), "XDG_RUNTIME_DIR": str(place)}
    return replace(command_line, home=place / "home", environment=environment, through=(*become, *may_read))


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_what_a_job_wrote_belongs_to_the_user_of_the_orchestrator(
    command_line: CommandLine, place: Path, docker_endpoint: str
) -> None:
    """BR-100: files, and a directory that may not be written, come out as the user's own; no volume stays."""
    workspace = place / "workspace"
    workspace.mkdir()
    (workspace / "readme").write_text("here\n")
    for path in (workspace, workspace / "readme"):
        os.chown(path, USER, USER)
    line = _as_user(command_line, place, docker_endpoint)

    ran = line.run(
        *("run", "write", "--workspace", str(workspace), "--apply", "--exec", WRITES),
        *("--model", f"scripted:{SCRIPT}"),
    )

    assert ran.exit_code == 0, ran.out + ran.err
    written = [workspace / "out", workspace / "out" / "a.txt", workspace / "out" / "ro" / "b"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in written} == {(USER, USER)}
    assert stat.S_IMODE(written[1].stat().st_mode) & stat.S_IWUSR
    instance = (line.home / "instance-id").read_text()
    assert not _left_on_engine(docker_endpoint, instance)
    assert list((place / "portside").glob("*/*")) == []


def _left_on_engine(endpoint: str, instance: str) -> list[object]:
    with closing(DockerClient(base_url=endpoint)) as client:
        label = f"{LABEL_INSTANCE}={instance}"
        return [
            *client.containers.list(all=True, filters={"label": label}),
            *client.volumes.list(filters={"label": label}),
        ]
