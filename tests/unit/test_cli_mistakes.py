"""Mistakes in a command that are found before anything is opened or started (PD-14)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from orchestrator.cli import main as command_line
from orchestrator.cli.tools_commands import MAX_FILE_BYTES
from tests.support.command_line import ROOT
from wasm_tools.component_file import MAX_COMPONENT_BYTES

SCRIPTED = f"scripted:{ROOT / 'examples' / 'scripts' / 'broken-calculator.yaml'}"
RUN = ["run", "x", "--model", SCRIPTED]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and nothing in the environment that names a model or an engine."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PORTSIDE_MODEL", "PORTSIDE_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PORTSIDE_HOME", str(tmp_path / "home"))


def typed(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command that is run in this process."""
    monkeypatch.setattr(sys, "argv", ["portside", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([*RUN, "--workspace", "/nowhere"], "/nowhere is not a directory"),
        (["run", "x", "--model", "gpt"], "unknown model 'gpt': write openai:MODEL"),
        (["run", "x", "--model", "scripted:/nowhere.yaml"], "/nowhere.yaml is not a file"),
        (["run", "x"], "no model is configured: set OPENAI_API_KEY"),
        ([*RUN, "--memory", "lots"], "'lots' is not a size"),
        ([*RUN, "--memory", "1m"], "a job needs 64m at least"),
        ([*RUN, "--timeout", "nan"], "'nan' is not a number over 0"),
        ([*RUN, "--cpus", "-1"], "'-1' is not a number over 0"),
        ([*RUN, "--max-iterations", "0"], "greater than or equal to 1"),
        ([*RUN, "--apply"], "--apply needs a --workspace"),
        ([*RUN, "--apply", "--detach"], "--apply needs the job's end"),
        (["run", "x", "--bogus"], "No such option: --bogus"),
        (["run"], "say what the agent should do"),
        (["jobs", "show"], "(see: portside jobs show --help)"),
        (["jobs", "list", "--state", "odd"], "'--state': 'odd' is not one of 'queued'"),
        (["tools", "call", "x", "{"], "the arguments are not JSON"),
        (["tools", "call", "x", "@/"], "the arguments can't be read from /: Is a directory"),
        (["tools", "add", "a b.wasm"], "rename 'a b.wasm'"),
        (["tools", "add", "absent"], "absent is neither a component nor a project"),
        (["tools", "check", "--provider", "acme"], "there are openai, openai-strict, anthropic"),
        (["mcp", "add", "x"], "give either --url URL, or a command after --"),
        (["mcp", "import", sys.executable], ": it is not UTF-8 text"),
        (["agents", "token", "x", "--days", "inf"], "'inf' is not a number over 0"),
        (["network", "tasks", "--state", "odd"], "'odd' is not one of 'pending'"),
        (["representatives", "grant", "x", "local", "fly"], "'fly' is not one of 'observe'"),
        (["agents", "add", "x", "--kind", "odd"], "'odd' is not one of 'worker'"),
    ],
)
def test_a_usage_mistake_is_one_line_and_exit_code_2(
    arguments: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed(*arguments, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    message = said.err.rpartition("portside: ")[2]
    assert text in message
    assert len(message.splitlines()) == 1
    assert "something broke" not in said.err
    assert not (tmp_path / "home").exists()


def test_a_component_that_is_too_large_is_not_even_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """BR-096: the most is what loading takes."""
    assert MAX_FILE_BYTES == MAX_COMPONENT_BYTES
    large = tmp_path / "large.wasm"
    with large.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert typed("tools", "add", str(large), monkeypatch=monkeypatch) == 2
    assert "more than 64 MiB, which is the most" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["jobs", "list"], RUN])
def test_a_state_directory_that_can_not_be_one_is_named(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").touch()
    assert typed(*arguments, monkeypatch=monkeypatch) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"portside: the state directory {tmp_path / 'home'} can't be used: ")
    assert said.endswith("set PORTSIDE_HOME to a directory of your own")


def test_a_command_group_without_a_command_shows_its_help_and_no_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("jobs", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert "Usage: portside jobs" in said.out + said.err
    assert "portside:" not in said.err
