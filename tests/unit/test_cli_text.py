"""What agents and tools wrote, on a terminal and as JSON (PD-14)."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.output import Output
from orchestrator.cli.plain_console import plain
from orchestrator.cli.summary import calls_of, calls_table
from orchestrator.cli.timeline import TimelinePrinter
from orchestrator.cli.visible import one_line, visible

HOSTILE = "\x1b[2J\x1b]0;title\x07[bold]red[/]\r\nnext\u202edesrever\u2028sep\ud800 :smile:"
SAFE = r"\x1b[2J\x1b]0;title\x07[bold]red[/] next\u202edesrever sep\ud800 :smile:"


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"position": 1, "type": kind, "at": "2026-01-02T03:04:05Z", "data": data}


def shown(*events: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=1000, emoji=False)
    printer = TimelinePrinter(console)
    for one in events:
        printer.show(one)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "told",
    [
        event("status", state="running", message=HOSTILE),
        event("status", state=HOSTILE),
        event("message", role="assistant", text=HOSTILE),
        event("log", level="info", text=HOSTILE),
        event("tool_use", tool_name=HOSTILE, params={}),
        event("tool_result", verdict="ok", first_call=False, preview=HOSTILE),
        event("tool_result", verdict=HOSTILE, first_call=False, preview=""),
        event("result", outcome=HOSTILE, iterations=1),
        event("egress", host=HOSTILE, port=1, outcome="refused", cause="not_allowed"),
    ],
)
def test_hostile_text_is_one_line_in_which_nothing_moves_the_cursor(told: dict[str, Any]) -> None:
    text = shown(told)
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert SAFE in text


def test_no_text_on_a_command_s_console_moves_the_cursor_or_hides_wherever_it_stands() -> None:
    """PD-14, PD-18: held where everything is printed, so that no command can forget it."""
    console = plain(Console(file=io.StringIO(), width=1000, emoji=False, force_terminal=True))
    output = Output(console=console)
    cell = Table()
    cell.add_row(Text(HOSTILE, style="red"), HOSTILE)
    output.show(None, HOSTILE, Text(HOSTILE), cell)
    output.say(HOSTILE)
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    assert told.count(r"\x1b[2J\x1b]0;title") == 5
    for mark in ("\x1b[2J", "\x1b]0", "\x07", "\r", "\u202e"):
        assert mark not in told
    assert "\x1b[31m" in told  # what we colour ourselves


def test_an_event_of_an_unknown_kind_is_shown_as_it_is() -> None:
    assert '{"a": 1}' in shown(event("console", a=1))
    assert '{"a": 1}' in shown(event("show", a=1))


def test_what_was_changed_of_arguments_stands_beside_the_result() -> None:
    """PD-21: and a hostile pointer moves no cursor."""
    changes = [
        {"pointer": f"/{HOSTILE}", "kind": "coerced", "was": "string", "became": "integer"},
        {"pointer": "/lang", "kind": "dropped_null", "was": "null", "became": ""},
    ]
    text = shown(event("tool_result", verdict="ok", first_call=False, preview="p", adjustments=changes))
    assert "was a string and is read as integer]" in text
    assert "[/lang was null, which its schema refuses: dropped]" in text
    assert "\x1b" not in text


def test_a_message_of_blanks_is_not_shown() -> None:
    assert shown(event("message", role="assistant", text=" \n")) == ""


def test_long_text_is_cut_and_says_so() -> None:
    assert one_line("x" * 300).endswith("...")
    assert len(one_line("x" * 300)) == 200
    assert one_line("x" * 200) == "x" * 200


def test_a_diff_keeps_its_lines_and_loses_its_escapes() -> None:
    assert visible("+a\tb\n-\x1b[31mc\n") == "+a\tb\n-\\x1b[31mc\n"


def test_each_first_call_is_listed_with_its_verdict() -> None:
    events = [
        event("tool_use", call_id="1", source="proxy", tool_name="notes"),
        event(
            "tool_result",
            call_id="1",
            tool_name="notes[/red]",
            verdict="invalid_params",
            first_call=True,
            duration_ms=3,
            errors=[{"rule": "required"}, {"rule": "type"}],
        ),
    ]
    (call,) = calls_of(events)
    assert call["rules"] == ["required", "type"]
    console = Console(file=io.StringIO(), width=200)
    console.print(calls_table([call]))
    assert isinstance(console.file, io.StringIO)
    row = console.file.getvalue().splitlines()[-1]
    assert row.split() == [
        "notes[/red]",
        "proxy",
        "invalid_params",
        "broke",
        "the",
        "schema:",
        "required,",
        "type",
        "3",
    ]


def test_json_takes_any_text_a_workspace_can_hold(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Output(as_json=True).json_line({"name": "caf\udce9 \u2028 ü"})
    line = capfdbinary.readouterr().out
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"name": "caf\udce9 \u2028 ü"}


def test_of_an_error_of_many_lines_the_last_are_shown_each_below_the_other() -> None:
    """PD-14: a traceback says at its end what went wrong."""
    frames = "".join(f'  File "m{number}.py", line 1, in f\n    f()\n' for number in range(40))
    trace = f"Traceback (most recent call last):\n{frames}ValueError: {HOSTILE}\n"
    text = shown(event("log", level="error", text=trace))
    first, *rest = text.splitlines()
    assert first.split()[1:] == ["error"]
    assert rest[0].strip() == "(71 lines before)"
    assert rest[-2].strip().startswith("ValueError:")
    assert rest[-1].strip() == rest[-1].lstrip()
    assert all(line.startswith("    ") for line in rest)
    assert "Traceback" not in text
    assert "\x1b" not in text


def test_an_error_of_one_line_stays_one() -> None:
    assert shown(event("log", level="error", text="it broke\n")).split()[1:] == ["error", "it", "broke"]


def test_a_command_s_output_and_its_model_requests_are_lines_of_the_timeline() -> None:
    """PD-32: one line of the terminal for each line that was written, and nothing in it moves the cursor."""
    told = shown(event("output", stream="stdout", text=f"one\n\n  two\n{HOSTILE}\n"))
    lines = told.splitlines()
    assert [line[9:19].strip() for line in lines] == ["stdout"] * len(lines)
    assert [line[20:] for line in lines[:2]] == ["one", "two"]
    assert "\x1b" not in told
    assert shown(event("output", stream="stderr", text="\n")) == ""
    asked = {"dialect": "openai", "endpoint": "responses", "status": 200, "stream": True, "duration_ms": 12}
    counts = {"input_tokens": 1200, "output_tokens": 3}
    whole = shown(event("model", whole=True, **asked, **counts))
    assert "openai responses 200, streamed, 1,200 tokens in, 3 out, 12 ms" in whole
    assert "broken off" in shown(event("model", whole=False, **asked, **counts))
    assert "no answer" in shown(event("model", whole=False, **{**asked, "status": 0}, **counts))


def test_connections_are_shown_with_their_bytes_or_with_why_there_was_none() -> None:
    """PD-70."""
    made = event(
        "egress",
        host="a.org",
        port=443,
        outcome="carried",
        cause=None,
        sent_bytes=1200,
        received_bytes=34_000,
        duration_ms=56,
    )
    refused = event("egress", host="b.org", port=80, outcome="refused", cause="private_address")
    assert shown(made).endswith("network    a.org:443 1,200 bytes out, 34,000 in, 56 ms\n")
    assert shown(refused).endswith("network    b.org:80 refused: private address\n")
