"""The reported faults of shell tools, and their kinds (PD-9)."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.deadline import eventually
from tests.support.tool_workspace import DirectoryWorkspace, SystemClock, ToolWorkspace
from tool_registry.context import ToolContext
from worker.tools.background_jobs import BackgroundJobs
from worker.tools.shell import Launch, Shell
from worker.tools.workspace_paths import Workspace


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sleep 301.25 & echo started", "started"),
        ("(while true; do echo tick; sleep 0.2; done) & sleep 0.5; echo fg-done", "fg-done"),
        ("setsid sleep 301.25 & echo started", "started"),
        ("(sleep 301.25 >/dev/null 2>&1 &); echo started", "started"),
    ],
)
async def test_background_child_does_not_hold_the_call(
    tool_workspace: ToolWorkspace, command: str, expected: str
):
    """BR-025: the call ends with the shell; what it left behind is named and ended."""
    began = time.monotonic()
    result = await tool_workspace.result("shell", command=command, timeout_s=30)
    assert time.monotonic() - began < 20
    assert expected in result["stdout"]
    assert result["exit_code"] == 0
    assert result["ended"]
    assert "background: true" in result["note"]
    for pid in result["ended"]:
        assert not tool_workspace.alive(pid)


async def test_what_ignores_sigterm_is_ended_with_its_call_too(tool_workspace: ToolWorkspace):
    """BR-025."""
    result = await tool_workspace.result(
        "shell", command="setsid sh -c 'trap \"\" TERM; sleep 609.25; sleep 609.25' & sleep 0.3; echo early"
    )
    assert (result["exit_code"], result["stdout"]) == (0, "early\n")
    assert tool_workspace.processes_with("609.25") == []


async def test_output_of_a_process_substitution_is_not_lost(tool_workspace: ToolWorkspace):
    """BR-025: what finishes just after the shell is waited for shortly."""
    result = await tool_workspace.result("shell", command="echo hello > >(sleep 0.2; cat)")
    assert result["stdout"] == "hello\n"
    assert "ended" not in result


async def test_timeout_ends_the_whole_tree(tool_workspace: ToolWorkspace):
    """BR-027: busy loops, grandchildren, and what left the session or its parent."""
    command = (
        "for c in 1 2 3; do (while :; do :; done) & done; setsid sleep 602.25 & "
        "(setsid env -i sleep 602.25 &); nohup sleep 602.25 & echo partial; "
        "bash -c 'sleep 602.25; true'; echo never"
    )
    began = time.monotonic()
    output = await tool_workspace.call("shell", command=command, timeout_s=1)
    assert time.monotonic() - began < 30
    assert output.is_error
    assert output.result["timed_out"] is True
    assert output.result["exit_code"] == 124
    assert output.result["stdout"] == "partial\n"
    assert tool_workspace.processes_with("602.25") == []


async def test_process_that_ignores_sigterm_is_killed(tool_workspace: ToolWorkspace):
    """BR-027: SIGTERM first, SIGKILL two seconds later."""
    command = "trap 'echo got-term' TERM; (trap '' TERM; sleep 603.25) & while :; do sleep 0.1; done"
    output = await tool_workspace.call("shell", command=command, timeout_s=0.5)
    assert "got-term" in output.result["stdout"]
    assert tool_workspace.processes_with("603.25") == []
    assert output.result["timed_out"] is True


async def test_cancelled_call_ends_its_tree(tool_workspace: ToolWorkspace):
    """BR-027, BR-034: a cancel is no result; nothing of the command is left."""
    call = asyncio.create_task(tool_workspace.call("shell", command="touch on; sleep 604.25; true"))
    await eventually(lambda: tool_workspace.exists("on"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert tool_workspace.processes_with("604.25") == []


async def test_cancel_while_starting_leaves_nothing(tool_workspace: ToolWorkspace):
    """BR-027: also when the cancel comes before the command runs."""
    for turns in (0, 1, 5, 20, 40):
        call = asyncio.create_task(tool_workspace.call("shell", command="sleep 605.25; true"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await eventually(lambda: tool_workspace.processes_with("605.25") == [])


async def test_deadline_of_the_job_shortens_the_timeout(directory_workspace: DirectoryWorkspace):
    """BR-027: partial output comes back before the caller would drop the call."""
    tool = directory_workspace.tool("shell")
    context = ToolContext(job_id="job", call_id="c", deadline=time.monotonic() + 3.5)
    output = await tool.execute({"command": "echo partial; sleep 606.25"}, context)
    assert output.result["timed_out"] is True
    assert output.result["stdout"] == "partial\n"


async def test_tool_allows_the_longest_timeout(directory_workspace: DirectoryWorkspace):
    """BR-027: the outer limit is above the largest inner one."""
    tool = directory_workspace.tool("shell")
    assert tool.traits.timeout_s > tool.definition.parameters["properties"]["timeout_s"]["maximum"]


async def test_long_output_keeps_head_and_tail(tool_workspace: ToolWorkspace):
    """BR-029: both ends, the number of bytes and lines left out, and a file with the whole."""
    command = (
        "python3 -c \"\nprint('HEAD-MARK')\nfor i in range(400000): print('row', i)\n"
        "print('TAIL-MARK: 3 failed')\"; exit 1"
    )
    output = await tool_workspace.call("shell", command=command)
    result = output.result
    assert result["exit_code"] == 1
    assert result["stdout"].startswith("HEAD-MARK\n")
    assert result["stdout"].endswith("TAIL-MARK: 3 failed\n")
    assert len(result["stdout"].encode()) < 66_000
    whole = tool_workspace.saved(result["stdout_path"]).decode()
    assert whole.count("\n") == 400_002
    assert result["truncated"] is True
    assert output.truncated is not None
    assert output.truncated.original_bytes == len(whole)
    assert output.truncated.artifact == result["stdout_path"]
    head, tail = result["stdout"].split("\n[... ")[0], result["stdout"].split(" ...]\n")[1]
    missing = len(whole) - len(head) - len(tail)
    assert f"[... {missing} bytes (" in result["stdout"]
    read = await tool_workspace.result("read_file", path=result["stdout_path"], offset=200_001, limit=1)
    assert read["content"] == "200001\trow 199999\n"


async def test_long_standard_error_is_bounded_as_well(tool_workspace: ToolWorkspace):
    """BR-029: the other stream is no way round the bound."""
    result = await tool_workspace.result("shell", command="head -c 300000 /dev/zero | tr '\\0' 'x' >&2")
    assert len(result["stderr"]) < 66_000
    assert len(tool_workspace.saved(result["stderr_path"])) == 300_000
    assert result["stdout"] == ""


async def test_endless_output_stays_bounded_in_the_file(tool_workspace: ToolWorkspace):
    """BR-029: neither memory nor disk grows with `yes`."""
    output = await tool_workspace.call("shell", command="yes | head -c 80000000")
    saved = tool_workspace.saved(output.result["stdout_path"])
    assert len(saved) <= 32 * 1024 * 1024
    assert saved.startswith(b"[... older output was dropped ...]\n")


async def test_bytes_that_are_no_utf8_are_shown_escaped(tool_workspace: ToolWorkspace):
    """BR-031: nothing after them is lost, and the result is valid Unicode."""
    result = await tool_workspace.result("shell", command=r"printf 'a\xf0\xff b\n'; echo after")
    assert result["stdout"] == "a\\xf0\\xff b\nafter\n"
    json.dumps(result).encode()


async def test_character_split_between_reads_arrives_whole(tool_workspace: ToolWorkspace):
    """BR-031: decoding goes across pieces."""
    command = (
        'python3 -c "import sys,time\nw=sys.stdout.buffer\n'
        "for b in ('x'*4095+'\\U0001F600'+'y\\n').encode(): w.write(bytes([b])); w.flush()\""
    )
    result = await tool_workspace.result("shell", command=command)
    assert result["stdout"] == "x" * 4095 + "\U0001f600y\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("read -p 'Continue? ' a; echo \"got:[$a] rc:$?\"", "got:[]"),
        ("git init -q . && git commit -qm one --allow-empty && git commit -q --amend; echo rc:$?", "rc:"),
        ("python3 -c \"open('/dev/tty').read()\" 2>&1 | tail -1", "/dev/tty"),
        ("git log | cat; echo $PAGER $GIT_TERMINAL_PROMPT $CI", "cat 0 1"),
    ],
)
async def test_nobody_is_asked(tool_workspace: ToolWorkspace, command: str, expected: str):
    """BR-033: no input, no terminal, no editor, no pager."""
    began = time.monotonic()
    output = await tool_workspace.call("shell", command=command)
    assert expected in output.result["stdout"]
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("command", "code", "name", "stdout"),
    [
        ("echo before; kill -9 $$", 137, "SIGKILL", "before\n"),
        ("kill -TERM $$", 143, "SIGTERM", ""),
        ("bash -c 'kill -SEGV $$' 2>/dev/null; echo inner=$?", 0, None, "inner=139\n"),
        ("kill -35 $$", 163, "SIG35", ""),
        ("exit 7", 7, None, ""),
    ],
)
async def test_death_by_signal_is_a_failure_with_its_name(
    tool_workspace: ToolWorkspace, command: str, code: int, name: str | None, stdout: str
):
    """BR-034: 128 + n, never a success; not confused with a timeout."""
    output = await tool_workspace.call("shell", command=command)
    assert output.result["exit_code"] == code
    assert output.result.get("signal") == name
    assert output.result["stdout"] == stdout
    assert output.result["timed_out"] is False
    assert output.is_error is (code != 0)


async def test_broken_pipe_ends_a_writer_silently(tool_workspace: ToolWorkspace):
    """BR-034: commands start with the default signal actions, as in any shell."""
    result = await tool_workspace.result("shell", command="yes | head -1; echo ${PIPESTATUS[0]}")
    assert result["stdout"] == "y\n141\n"
    assert result["stderr"] == ""


async def test_environment_is_the_allow_list(tool_workspace: ToolWorkspace):
    """BR-035: nothing of the worker's own environment, in any place where a command can look."""
    command = (
        "env | sort; tr '\\0' '\\n' </proc/$PPID/environ; ps axww -o args; tr '\\0' '\\n' </proc/self/environ"
    )
    output = await tool_workspace.call("shell", command=command)
    text = output.result["stdout"] + output.result["stderr"]
    assert "tok-abc123" not in text
    assert "k-xyz789" not in text
    for line in ("HTTP_PROXY=http://p:3128", "LANG=C.UTF-8", "GIT_TERMINAL_PROMPT=0", "CI=1", "PAGER=cat"):
        assert line in text.splitlines()
    names = {
        line.split("=", 1)[0]
        for line in (await tool_workspace.result("shell", command="env"))["stdout"].splitlines()
    }
    assert {"PATH", "HOME", "GIT_AUTHOR_NAME"} <= names
    assert not names & {"WORKER_JWT", "PROVIDER_API_KEY", "PYTHONPATH", "PYTEST_CURRENT_TEST"}


async def test_progress_is_collapsed_and_colour_stripped(tool_workspace: ToolWorkspace):
    """BR-036: what a terminal would show."""
    command = (
        "python3 -c \"\nimport sys\nfor i in range(5000): sys.stdout.write('\\x1b[2K\\rPROGRESS %05d'%i)\n"
        "sys.stdout.write('\\n\\x1b[31mred\\x1b[0m done\\nwin-line\\r\\nfirst\\rsecond\\n')\""
    )
    result = await tool_workspace.result("shell", command=command)
    assert result["stdout"] == "PROGRESS 04999\nred done\nwin-line\nsecond\n"
    assert result["truncated"] is False
    assert "stdout_path" not in result
    assert tool_workspace.names("../out") == []


@pytest.mark.parametrize(
    ("command", "failed", "stdout"),
    [
        ("python3 - <<'EOF'\nprint('hi')\n  EOF", True, ""),
        ("echo 'it is open", True, ""),
        ("cat <<'EOF'\nok\nEOF", False, "ok\n"),
        ("cat <<'EOF'\nok\nEOF\n", False, "ok\n"),
        ("echo x # comment at the end", False, "x\n"),
        ("echo a;", False, "a\n"),
        ("{ echo open", True, ""),
        ("echo '%s' \"$0\" '\\n'", False, None),
    ],
)
async def test_command_text_is_taken_as_it_is(
    tool_workspace: ToolWorkspace, command: str, *, failed: bool, stdout: str | None
):
    """BR-037: an open quote or heredoc ends at once, and the next call is untouched."""
    began = time.monotonic()
    output = await tool_workspace.call("shell", command=command, timeout_s=20)
    assert time.monotonic() - began < 15
    assert output.is_error is failed
    if stdout is not None:
        assert output.result["stdout"] == stdout
    alive = await tool_workspace.result("shell", command="echo alive")
    assert (alive["stdout"], alive["stderr"]) == ("alive\n", "")


async def test_very_long_command_runs(tool_workspace: ToolWorkspace):
    """BR-037: beyond what fits into one argument."""
    filler = "x" * 300_000
    result = await tool_workspace.result("shell", command=f"cat > big.txt <<'EOF'\n{filler}\nEOF\necho ok")
    assert result["stdout"] == "ok\n"
    assert tool_workspace.get("big.txt") == f"{filler}\n".encode()
    assert tool_workspace.names("../out") == []


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800"])
async def test_command_that_no_shell_can_take_is_refused(tool_workspace: ToolWorkspace, command: str):
    """BR-037: with a reason, not a crash."""
    refusal = await tool_workspace.refusal("shell", command=command)
    assert refusal["code"] == "bad_command"


async def test_every_call_starts_afresh(tool_workspace: ToolWorkspace):
    """BR-038: in the workspace, with the same environment, whatever the calls before did."""
    await tool_workspace.result("shell", command="mkdir -p sub && cd sub && export X=1")
    second = await tool_workspace.result("shell", command='pwd; echo "X=$X"')
    assert second["stdout"] == f"{tool_workspace.path}\nX=\n"
    await tool_workspace.call("shell", command="cd ..; sleep 60", timeout_s=0.3)
    fourth = await tool_workspace.result("shell", command="pwd; touch here.txt")
    assert fourth["stdout"] == f"{tool_workspace.path}\n"
    assert tool_workspace.exists("here.txt")
    inside = await tool_workspace.result("shell", command="pwd", workdir="sub")
    assert inside["stdout"] == f"{tool_workspace.path}/sub\n"
    removed = await tool_workspace.result("shell", command="rmdir ../sub; pwd", workdir="sub")
    assert removed["exit_code"] == 0
    gone = await tool_workspace.refusal("shell", command="pwd", workdir="sub")
    assert gone["code"] == "not_a_directory"


async def test_workdir_outside_is_refused(tool_workspace: ToolWorkspace):
    """BR-038, BR-010: the same boundary as for files."""
    for workdir in ("..", str(tool_workspace.outside)):
        refusal = await tool_workspace.refusal("shell", command="pwd", workdir=workdir)
        assert refusal["code"] == "outside_workspace"


async def test_orphans_leave_no_zombies(tool_workspace: ToolWorkspace):
    """BR-039: they are reaped without an init, and every exit code is right."""
    results = [
        await tool_workspace.call("shell", command=f"bash -c '(sleep 0.05 &) ; true'; exit {n % 5}")
        for n in range(25)
    ]
    assert [output.result["exit_code"] for output in results] == [n % 5 for n in range(25)]
    await eventually(lambda: tool_workspace.zombies() == [])


async def test_orphans_of_a_running_command_are_reaped_too(tool_workspace: ToolWorkspace):
    """BR-039: not only at its end."""
    command = (
        "for i in $(seq 200); do bash -c '(true &)'; done; sleep 0.2; ps -eo stat,ppid | grep -c ^Z; true"
    )
    result = await tool_workspace.result("shell", command=command)
    assert int(result["stdout"]) <= 2


async def test_background_command_answers_at_once(tool_workspace: ToolWorkspace):
    """Decision 22: pid and log; the log is readable; listing and killing are ordinary commands."""
    began = time.monotonic()
    result = await tool_workspace.result(
        "shell", command="echo out; echo err >&2; sleep 607.25; true", background=True
    )
    assert time.monotonic() - began < 30
    await eventually(lambda: tool_workspace.saved(result["log_path"]) == b"out\nerr\n")
    read = await tool_workspace.result("read_file", path=result["log_path"])
    assert read["content"] == "1\tout\n2\terr\n"
    listed = await tool_workspace.result("shell", command=f"ps -o args= -p {result['pid']}")
    assert "607.25" in listed["stdout"]
    await tool_workspace.result("shell", command=f"kill -- -{result['pid']}")
    await eventually(lambda: tool_workspace.processes_with("607.25") == [])


async def test_background_command_that_fails_at_once_says_so(tool_workspace: ToolWorkspace):
    """A server that does not start is not reported as running."""
    output = await tool_workspace.call("shell", command="nosuchcommand", background=True)
    assert output.is_error
    assert output.result["exit_code"] == 127
    assert b"not found" in tool_workspace.saved(output.result["log_path"])


async def test_job_end_stops_background_commands(tool_workspace: ToolWorkspace):
    """Decision 22: the worker ends them all."""
    await tool_workspace.result("shell", command="setsid sleep 608.25; true", background=True)
    await tool_workspace.close()
    assert tool_workspace.processes_with("608.25") == []


async def test_killed_supervisor_does_not_hang_the_call(tool_workspace: ToolWorkspace):
    """A command that kills what watches it is reported as killed."""
    output = await tool_workspace.call("shell", command="kill -9 $PPID; sleep 609.25; true", timeout_s=20)
    assert output.is_error
    assert output.result["signal"] == signal.SIGKILL.name
    await eventually(lambda: tool_workspace.processes_with("609.25") == [])


async def test_shell_that_is_missing_is_a_refusal(directory_workspace: DirectoryWorkspace, tmp_path: Path):
    """The model is told; the job goes on."""
    launch = Launch(environment={}, python=("/nonexistent/python",), output_dir=tmp_path / "o")
    shell = Shell(Workspace(directory_workspace.path), launch, BackgroundJobs(), SystemClock())
    output = await shell.execute({"command": "true"}, ToolContext(job_id="j", call_id="c"))
    assert output.result["code"] == "not_started"


def test_without_bash_the_model_is_told_that_commands_run_in_sh(tmp_path: Path):
    """PD-33."""
    launch = Launch(environment={}, python=("python",), output_dir=tmp_path, shell="/bin/sh")
    shell = Shell(Workspace(tmp_path), launch, BackgroundJobs(), SystemClock())
    assert shell.definition.description.startswith("Run a command with sh, in the workspace.")


async def test_what_a_commands_environment_says_to_interpreters_is_for_the_command_alone(
    directory_workspace: DirectoryWorkspace, tmp_path: Path
):
    """PD-33: the process that watches it would not even start with it."""
    launch = Launch(
        environment={"PYTHONHOME": "/nowhere", "LD_LIBRARY_PATH": "/nowhere", "ODD": "a\nb=c\udcff"},
        python=(sys.executable,),
        output_dir=tmp_path / "o",
    )
    shell = Shell(Workspace(directory_workspace.path), launch, BackgroundJobs(), SystemClock())
    command = {"command": 'printf "%s|%s|%s" "$PYTHONHOME" "$LD_LIBRARY_PATH" "$ODD" | od -An -c | tail -1'}
    output = await shell.execute(command, ToolContext(job_id="j", call_id="c"))
    assert output.result["exit_code"] == 0
    assert "377" in output.result["stdout"]
