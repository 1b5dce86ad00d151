"""PD-7, PD-14: secret values come from a pipe or a prompt, and never from or to the command line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.failures import USAGE, UsageMistake
from orchestrator.cli.secrets_commands import read_value, secret_grants

VALUE = "zq-marker-Value/9+8=="


def portside(
    home: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PORTSIDE_HOME": str(home / "state"),
            **(env or {}),
        },
        cwd=Path(__file__).parents[2],
    )


def test_a_secret_is_set_from_a_pipe_listed_and_removed_without_being_shown(tmp_path: Path) -> None:
    done = portside(tmp_path, "secrets", "set", "GITHUB", stdin=f"{VALUE}\n".encode())
    assert (done.returncode, done.stdout.strip()) == (0, b"set GITHUB (version 1)"), done.stderr
    listed = portside(tmp_path, "secrets", "list", "--json")
    assert b'"name": "GITHUB"' in listed.stdout
    removed = portside(tmp_path, "secrets", "rm", "GITHUB")
    assert removed.returncode == 0
    gone = portside(tmp_path, "secrets", "rm", "GITHUB")
    assert (gone.returncode, gone.stderr.strip()) == (1, b"portside: there is no secret 'GITHUB'")
    everything = done.stdout + done.stderr + listed.stdout + listed.stderr + removed.stdout
    assert b"marker" not in everything
    state = b"".join(one.read_bytes() for one in (tmp_path / "state").rglob("*") if one.is_file())
    assert b"marker" not in state


@pytest.mark.parametrize("arguments", [("GITHUB", VALUE), (f"GITHUB={VALUE}",)])
def test_a_value_on_the_command_line_is_refused_and_not_repeated(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = portside(tmp_path, "secrets", "set", *arguments)
    assert done.returncode == USAGE
    assert b"pipe it in" in done.stderr
    assert b"marker" not in done.stdout + done.stderr


class _Pipe(io.TextIOWrapper):
    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"plain", "plain"),
        (b"line\n", "line"),
        (b"line\r\n", "line"),
        (b"two\nlines\n\n", "two\nlines\n"),
        (b" spaces stay \n", " spaces stay "),
        ("höhe".encode(), "höhe"),
    ],
)
def test_one_last_line_break_is_not_part_of_the_value(
    monkeypatch: pytest.MonkeyPatch, raw: bytes, value: str
) -> None:
    monkeypatch.setattr("sys.stdin", _Pipe(io.BytesIO(raw)))
    assert read_value("A") == value


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xff\xfe"])
def test_no_value_is_a_usage_mistake(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr("sys.stdin", _Pipe(io.BytesIO(raw)))
    with pytest.raises(UsageMistake):
        read_value("A")


def test_grants_are_read_as_pairs() -> None:
    assert secret_grants(["GITHUB=GH_TOKEN", "a.b=A"]) == {"GITHUB": "GH_TOKEN", "a.b": "A"}


@pytest.mark.parametrize("given", [["GITHUB"], ["=X"], ["A="], ["A=B", "A=C"], [""]])
def test_what_is_no_pair_is_a_usage_mistake(given: list[str]) -> None:
    with pytest.raises(UsageMistake, match="--secret"):
        secret_grants(given)
