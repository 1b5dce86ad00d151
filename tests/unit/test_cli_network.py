"""PD-62, PD-63, PD-64: the network on the command line: humans talk, and nothing they write acts on a terminal."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.failures import UsageMistake
from orchestrator.cli.main import app
from tests.support.orchestrator import Wired

HUMANS = "networks: {local: {agents: {ann: {kind: human}, bob: {kind: human}}}}"


class Terminal:
    """Commands against a running orchestrator, in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture

    async def __call__(self, *arguments: str, code: int = 0) -> str:
        """What `portside network ...` prints, free of control characters."""
        ended: Any = await asyncio.to_thread(app, ["network", *arguments], standalone_mode=False)
        out = self.capture.readouterr().out
        assert (ended or 0) == code, out
        assert "\x1b" not in out
        return out


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory with two humans, which commands find."""
    (home / "agents.yaml").write_text(HUMANS)
    monkeypatch.setenv("PORTSIDE_HOME", str(home))
    return home


@pytest.fixture
def portside(orchestrator: Wired, capsys: pytest.CaptureFixture[str]) -> Terminal:
    assert orchestrator.settings.api_socket.exists()
    return Terminal(capsys)


async def test_humans_ask_reply_and_are_shown_and_a_changed_message_is_found(
    portside: Terminal, home: Path
) -> None:
    sent = await portside("ask", "bob", "Ready?\n\x1b[2J\u202eX", "--as", "ann", "--json")
    thread = json.loads(sent)["thread_id"]
    for _ in range(2):  # an ask stays
        waiting = await portside("inbox", "--as", "bob")
        assert "ask from ann\n  > Ready?\n  > \\x1b[2J\\u202eX\n" in waiting
        assert f"portside network reply {thread} TEXT --as NAME" in waiting
    assert await portside("reply", thread, "Yes.", "--as", "bob") == f"sent, in thread {thread}\n"
    assert await portside("inbox", "--as", "bob") == "nothing waits\n"
    shown = await portside("thread", thread)
    assert "reply from bob to ann waiting\n  > Yes.\n" in shown
    assert thread in await portside("threads")
    assert await portside("verify") == "2 messages in 1 thread are as the hub took them\n"
    with sqlite3.connect(home / "portside.db") as database:
        database.execute("UPDATE network_messages SET body = 'No.' WHERE sequence = 2")
    assert f"thread {thread} message 2: it was changed" in await portside("verify", thread, code=3)


async def test_a_task_is_given_taken_done_and_shown(portside: Terminal) -> None:
    to_bob = ("--to", "bob", "--as", "ann", "--criterion", "blue", "--json")
    task = json.loads(await portside("delegate", "Paint it.", *to_bob))["task_id"]
    assert f"offer of task {task} offered: Paint it." in await portside("inbox", "--as", "bob")
    assert await portside("task", "accept", task, "--as", "bob") == f"task {task} is accepted\n"
    done = await portside("task", "complete", task, "--as", "bob", "--reason", "it is blue")
    assert done == f"task {task} is completed\n"
    shown = await portside("task", task)
    assert "done when: blue" in shown
    assert "completed bob it is blue" in shown
    assert "status from bob\n  > The task is completed: it is blue" in await portside("inbox", "--as", "ann")
    assert "tasks: 1 completed" in await portside("status")
    assert task in await portside("tasks", "--state", "completed")
    assert await portside("tasks", "--state", "pending") == "no such tasks\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("task", "paint", "t"), "a task can be moved by accept, decline"),
        (("task", "accept", "t"), "say who you are"),
    ],
)
def test_a_mistake_says_what_to_type(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageMistake, match=said):
        app(["network", *arguments], standalone_mode=False)
