"""What is typed, and what it means (PD-14)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.failures import USAGE, CommandFailed, UsageMistake
from orchestrator.cli.job_ids import resolve
from orchestrator.cli.main import without_debug
from orchestrator.cli.mcp_commands import server_entry
from orchestrator.cli.output import Output
from orchestrator.cli.run import apply_command
from orchestrator.cli.run_command import chosen_model, parse_size
from orchestrator.cli.tools_commands import read_arguments
from orchestrator.probe import Expected, facts_of

IDS = ["01a2-0001-aaaa", "01a2-0002-bbaa", "01b3-0003-cccc"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512m", 512 * 2**20),
        ("2g", 2**31),
        ("1.5G", 3 * 2**29),
        ("2GiB", 2**31),
        ("4096", 4096),
        ("1kb", 1024),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "g", "2x", "-1g", "0", "nan", "inf", "1e999g", "2 2g", "b"])
def test_what_is_no_size_is_a_usage_mistake(text: str) -> None:
    with pytest.raises(UsageMistake, match="is not a size; write it like 512m or 2g") as caught:
        parse_size(text)
    assert caught.value.exit_code == USAGE


@pytest.mark.parametrize(
    ("asked", "job"), [("01a2-0001-aaaa", 0), ("AAAA", 0), ("bbaa", 1), ("01b", 2), (" cc ", 2)]
)
def test_an_id_may_be_given_by_a_unique_end_or_beginning(asked: str, job: int) -> None:
    assert resolve(asked, IDS) == IDS[job]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("aa", "means 2 jobs"),
        ("01a2", "means 2 jobs"),
        ("ffff", "there is no job"),
        ("../x", "is no job's id"),
        ("", "is no job's id"),
    ],
)
def test_what_means_no_job_or_several_says_so(asked: str, message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        resolve(asked, IDS)


def test_debug_is_taken_from_anywhere_but_another_programs_arguments() -> None:
    assert without_debug(["jobs", "--debug", "list"]) == (["jobs", "list"], True)
    kept = ["mcp", "add", "x", "--", "server", "--debug"]
    assert without_debug(kept) == (kept, False)


def test_a_server_is_a_command_or_a_url(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    assert server_entry(["python", "server.py"], "", ["A=b=c"], [], tmp_path) == {
        "command": "python",
        "args": ["server.py"],
        "env": {"A": "b=c"},
        "cwd": str(tmp_path),
    }
    assert server_entry(["npx", "thing"], "", [], [], tmp_path) == {"command": "npx", "args": ["thing"]}
    assert server_entry([], "https://x/mcp", [], ["A=Bearer ${secret:T}"], tmp_path) == {
        "url": "https://x/mcp",
        "headers": {"A": "Bearer ${secret:T}"},
    }


@pytest.mark.parametrize(
    "given",
    [
        ([], "", [], []),
        (["x"], "https://x", [], []),
        ([], "https://x", ["A=b"], []),
        (["x"], "", [], ["A=b"]),
        (["x"], "", ["A"], []),
        (["x"], "", ["=b"], []),
    ],
)
def test_a_server_that_can_not_be_is_a_usage_mistake(
    given: tuple[list[str], str, list[str], list[str]], tmp_path: Path
) -> None:
    command, url, env, header = given
    with pytest.raises(UsageMistake):
        server_entry(command, url, env, header, tmp_path)


def test_arguments_come_as_text_or_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert read_arguments('{"a": 1}') == read_arguments(f"@{tmp_path / 'a.json'}") == {"a": 1}


@pytest.mark.parametrize("given", ["", "{", "[1]", "null", "@/nowhere/at/all", "[" * 100_000])
def test_arguments_that_are_no_object_are_a_usage_mistake(given: str) -> None:
    with pytest.raises(UsageMistake, match="the arguments"):
        read_arguments(given)


def test_the_command_that_applies_changes_fits_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert apply_command("1a", tmp_path) == apply_command("1a", None) == "portside jobs apply 1a"
    there = tmp_path / "two words"
    assert apply_command("1a", there) == f"portside jobs apply 1a --workspace '{there}'"


SEALED: dict[str, Any] = {
    "socket": "reached",
    "tcp": ["ENETUNREACH", "ENETUNREACH"],
    "dns": "gaierror",
    "interfaces": ["lo"],
    "udp": "ENETUNREACH",
    "raw": "EPERM",
    "root": "EROFS",
    "disk": [2**30, 65_536],
    "engine": [],
    "seccomp": "2",
    "kernel": "6.1",
    "uid": 1000,
    "capabilities": ["0000000000000000"] * 3,
}


def test_a_sealed_box_is_good_in_every_respect() -> None:
    assert all(fact.good for fact in facts_of(SEALED).values())


@pytest.mark.parametrize(
    ("change", "bad"),
    [
        ({"socket": "ENOENT"}, "socket"),
        ({"tcp": ["reached", "ENETUNREACH"]}, "egress"),
        ({"tcp": ["ETIMEDOUT", "ETIMEDOUT"]}, "egress"),
        ({"interfaces": ["lo", "eth0"]}, "egress"),
        ({"dns": "reached"}, "dns"),
        ({"root": "reached"}, "root"),
        ({"udp": "reached"}, "egress"),
        ({"raw": "reached"}, "egress"),
        ({"engine": ["docker.sock"]}, "engine sockets"),
        ({"disk": [2**31, 1000]}, "disk"),
        ({"seccomp": "0"}, "filter"),
        ({"uid": 0}, "user"),
        ({"capabilities": ["0", "0", "00000000a80425fb"]}, "capabilities"),
    ],
)
def test_each_leak_is_found_and_has_a_fix(change: dict[str, Any], bad: str) -> None:
    facts = facts_of(SEALED | change, Expected(disk_bytes=2**30))
    assert [name for name, fact in facts.items() if not fact.good] == [bad]
    assert facts[bad].fix


def test_in_gvisor_no_filter_is_missed() -> None:
    assert facts_of(SEALED | {"seccomp": "0"}, Expected(filtered=False))["filter"].good


def test_the_command_line_starts_without_the_orchestrator() -> None:
    code = "import sys, orchestrator.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"orchestrator.main", "sqlalchemy", "fastapi", "mcp", "wasmtime", "docker", "pydantic_ai"}
    assert set(done.stdout.split()) & heavy == set()


def test_a_command_may_go_without_a_model_and_a_loop_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """PD-32: unless two keys make it a choice."""
    for name in ("PORTSIDE_MODEL", "PORTSIDE_MODEL_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    output = Output(as_json=True)
    assert chosen_model("", output, needed=False) == ""
    with pytest.raises(UsageMistake, match="no model is configured"):
        chosen_model("", output)
    monkeypatch.setenv("OPENAI_API_KEY", "a")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "b")
    with pytest.raises(UsageMistake, match="both provider keys are set"):
        chosen_model("", output, needed=False)


def test_a_run_has_something_to_do() -> None:
    """PD-32."""
    ran = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", "run", "--model", "openai:m"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert ran.returncode == USAGE
    assert "name a command with --exec" in ran.stderr
