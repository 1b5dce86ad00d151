"""PD-60, PD-14: agents on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.homes import remove_sockets


@pytest.fixture
def portside(tmp_path: Path) -> Iterator[CommandLine]:
    yield CommandLine(tmp_path / "home", {})
    remove_sockets(tmp_path / "home")


def test_an_agent_is_added_listed_shown_changed_and_removed(portside: CommandLine) -> None:
    added = portside.run(
        *(
            "agents",
            "add",
            "Reviewer",
            "--summary",
            "Reviews\x1b[31m code",
            "--capability",
            "Review: of code",
        ),
        *(
            "--responsible",
            "git@example.com:a/b.git=review, test",
            "--group",
            "team",
            "--mission",
            "Be kind.",
        ),
    )
    assert (added.exit_code, added.out) == (0, "added reviewer to the network local\n"), added.err
    listed = portside.run("agents", "list")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["agent", "coder", "reviewer"]
    assert "\x1b" not in listed.out
    changed = portside.run("agents", "update", "reviewer", "--tag", "x", "--autostart")
    assert changed.out == "changed reviewer: launch, tags\n"
    shown = json.loads(portside.run("agents", "show", "reviewer", "--json").out)
    assert (shown["launch"]["mission"], shown["launch"]["autostart"]) == ("Be kind.", True)
    assert shown["responsibilities"] == [{"resource_key": "example.com/a/b", "actions": ["review", "test"]}]
    for_people = portside.run("agents", "show", "reviewer").out
    assert "capabilities: Review: of code" in for_people
    assert "\x1b" not in for_people
    assert portside.run("agents", "remove", "reviewer").out == "removed reviewer\n"
    gone = portside.run("agents", "show", "reviewer")
    assert (gone.exit_code, gone.err) == (1, "portside: there is no agent 'reviewer' in this network\n")


def test_a_broken_file_is_told_beside_the_agents_and_a_wrong_option_says_what_to_do(
    portside: CommandLine,
) -> None:
    portside.home.mkdir()
    (portside.home / "agents.yaml").write_text("networks:\n  local:\n    agents:\n      a: {sumary: x}\n")
    listed = portside.run("agents", "list")
    assert "agents.yaml line 4: networks.local.agents.a.sumary: unknown key" in listed.out
    nothing = portside.run("agents", "update", "coder")
    assert (nothing.exit_code, "say what to change" in nothing.err) == (2, True)
    wrong = portside.run("agents", "add", "a", "--kind", "robot")
    assert (wrong.exit_code, "kind" in wrong.err) == (2, True)
