"""PD-18, BR-035: in a real container, nothing that a command can do gets at what it was not given."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT, CommandLine
from tests.support.orchestrator import Wired

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

HUNTER = ROOT / "tests" / "support" / "secret_hunter.py"
TOKEN = r"eyJhbGciOiJFZERTQSI[A-Za-z0-9_-]{10,}\.eyJ"  # {"alg":"EdDSA", as a job's token begins
GRANTED = "granted-5e1f0c3b9a7d2468"
UNGRANTED = "ungranted-0123456789abcdef"
HUNT = """
turns:
  - call: [{tool: shell, arguments: {command: "python3 hunter.py && printf %s \\"$GH_TOKEN\\" | rev > reversed.txt && echo it is $GH_TOKEN"}}]
  - expect: {last_tool_result: {tool: shell, is_error: false, contains: "it is [redacted:GH_TOKEN]"}}
    call: [{tool: finish, arguments: {success: true, summary: hunted}}]
"""


@pytest.fixture
def hunted(command_line: CommandLine, tmp_path: Path) -> tuple[dict[str, Any], str, str]:
    """What the hunter found, the diff, and all that the command line printed."""
    for name, value in (("GITHUB", GRANTED), ("OTHER", UNGRANTED)):
        assert command_line.run("secrets", "set", name, stdin=value + "\n").exit_code == 0
    workspace = tmp_path / "w"
    workspace.mkdir()
    shutil.copyfile(HUNTER, workspace / "hunter.py")
    script = tmp_path / "script.yaml"
    script.write_text(HUNT)
    ran = command_line.run(
        "run",
        "hunt",
        "--workspace",
        str(workspace),
        "--model",
        f"scripted:{script}",
        "--secret",
        "GITHUB=GH_TOKEN",
        "--json",
        timeout_s=200,
    )
    assert ran.exit_code == 0, ran.out[-3000:] + ran.err
    diff = str(ran.lines[-1]["diff"])
    (line,) = re.findall(r"^\+(\{\"tried\".*)$", diff, re.MULTILINE)
    return json.loads(line), diff, ran.out + ran.err


async def test_a_job_s_token_looks_as_it_is_hunted_for(orchestrator: Wired) -> None:
    """PD-18: a package's example of some other token is no find, and ours is."""
    worker = await orchestrator.worker()
    assert re.match(TOKEN, worker.token)
    assert TOKEN in HUNTER.read_text()


def test_no_command_gets_at_the_token_a_key_or_an_ungranted_secret(
    hunted: tuple[dict[str, Any], str, str],
) -> None:
    """Every way is tried on the worker and on a decoy; the decoy is found, the worker is closed."""
    seen, diff, printed = hunted
    opened, tried, found = seen["opened"], seen["tried"], seen["found"]

    # The ways work: the same hunter gets at a process that is not closed.
    assert [way for way in found if way.startswith("decoy environ")], seen
    assert [way for way in found if way.startswith("decoy mem")], seen

    for way in (
        "environ",
        "mem",
        "maps",
        "fd",
        "auxv",
        "ptrace",
        "process_vm_readv",
        "pidfd_getfd",
        "syscall",
    ):
        assert tried[f"worker {way}"] > 0
        assert opened.get(f"worker {way}", 0) == 0, way
    assert {way: loot for way, loot in found.items() if not way.startswith(("decoy", "others"))} == {}
    assert not [loot for many in found.values() for loot in many if not loot.startswith("decoy-")]
    assert opened.get("kernel and token file", 0) == 0
    assert seen["core"] == ["0", "0"]
    assert seen["run"] == ["s"]
    assert seen["descriptors"][:3] == ["0", "1", "2"]
    assert set(seen["routes"]) <= {401, 403, 404}

    # What was granted is there, under its name, and shown to nobody.
    assert GRANTED[::-1] in diff
    assert "GH_TOKEN" in seen["environment"]
    assert not [name for name in seen["environment"] if name.startswith("PORTSIDE")]
    for secret in (GRANTED, UNGRANTED):
        assert secret not in printed
    assert not re.search(TOKEN, printed)


def test_logs_of_worker_and_orchestrator_hold_no_secret(
    hunted: tuple[dict[str, Any], str, str], command_line: CommandLine
) -> None:
    """BR-121."""
    for file in command_line.home.rglob("*"):
        if not file.is_file() or "engine" in file.parts:
            continue
        data = file.read_bytes()
        assert UNGRANTED.encode() not in data, file
        assert not re.search(TOKEN.encode(), data), file
        # The job's own files may hold what it was given: it wrote it there itself.
        assert GRANTED.encode() not in data, file
