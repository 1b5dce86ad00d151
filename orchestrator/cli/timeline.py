"""A job's timeline on the terminal: one line an event, as it happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from orchestrator.cli.counted import counted
from orchestrator.cli.summary import adjustment
from orchestrator.cli.visible import one_line

_LAST_LINES = 12
_STATE_STYLE = {
    "completed": "bold green",
    "failed": "bold red",
    "timed_out": "bold red",
    "lost": "bold red",
    "cancelled": "yellow",
}


class TimelinePrinter:
    """Prints events; what agents and tools wrote is shown as plain text, control characters escaped."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: dict[str, Callable[[dict[str, Any]], Text | None]] = {
            "status": self._status,
            "message": self._message,
            "tool_use": self._tool_use,
            "tool_result": self._tool_result,
            "contract": self._contract,
            "result": self._result,
            "log": self._log,
            "output": self._output,
            "model": self._model,
            "egress": self._egress,
        }

    def show(self, event: dict[str, Any]) -> None:
        """Print one event of the API."""
        data: dict[str, Any] = event["data"]
        line = Text()
        line.append(f"{event['at'][11:19]} ", style="dim")
        shown = self._shown.get(event["type"], _other)(data)
        if shown is not None:
            line.append_text(shown)
            self._console.print(line, highlight=False, soft_wrap=True)

    def _status(self, data: dict[str, Any]) -> Text:
        state = one_line(str(data.get("state", "")))
        text = Text(f"{state:<10} ", style=_STATE_STYLE.get(state, "bold"))
        text.append(one_line(data.get("message") or ""), style="default")
        return text

    def _message(self, data: dict[str, Any]) -> Text | None:
        if not data["text"].strip():
            return None
        text = Text(f"{data['role']:<10} ", style="cyan")
        return text.append(one_line(data["text"]), style="default")

    def _tool_use(self, data: dict[str, Any]) -> Text:
        text = Text("tool       ", style="magenta")
        text.append(one_line(data["tool_name"]), style="bold")
        return text.append(" " + one_line(json.dumps(data["params"], ensure_ascii=False)), style="dim")

    def _tool_result(self, data: dict[str, Any]) -> Text:
        good = data["verdict"] == "ok"
        text = Text("  result   ", style="green" if good else "red")
        first = " (first call)" if data["first_call"] else ""
        text.append(f"{one_line(data['verdict'])}{first} ", style="green" if good else "red")
        for one in data.get("adjustments", ()):  # not in a timeline from before
            text.append(f"[{one_line(adjustment(one))}] ", style="yellow")
        return text.append(one_line(data["preview"]), style="dim")

    def _contract(self, data: dict[str, Any]) -> Text:
        word = "byte-identical to the catalogue" if data["identical"] else "NOT the catalogue's"
        style = "green" if data["identical"] else "bold red"
        return Text(f"contract   {data['tools']} tool definitions in the first request, {word}", style=style)

    def _result(self, data: dict[str, Any]) -> Text:
        files = data.get("files_changed")
        tail = "" if files is None else f", {counted(files, 'file')} changed"
        turns = counted(data["iterations"], "turn")
        return Text(f"result     {one_line(data['outcome'])} after {turns}{tail}", style="bold")

    def _log(self, data: dict[str, Any]) -> Text:
        style = {"warning": "yellow", "error": "red"}.get(data["level"], "dim")
        text = _end_of(data["text"]) if data["level"] == "error" else one_line(data["text"])
        return Text(f"{data['level']:<10} {text}", style=style)

    def _output(self, data: dict[str, Any]) -> Text | None:
        lines = [one_line(line) for line in data["text"].splitlines() if line.strip()]
        if not lines:
            return None
        head = f"{data['stream']:<10} "
        # each line stands below the first, past the column of the time
        text = head + f"\n{' ' * 9}{head}".join(lines)
        return Text(text, style="default" if data["stream"] == "stdout" else "yellow")

    def _model(self, data: dict[str, Any]) -> Text:
        text = Text("model      ", style="cyan" if 200 <= data["status"] < 300 else "red")
        said = f"{data['dialect']} {data['endpoint']} {data['status'] or 'no answer'}"
        if data["stream"]:
            said += ", streamed" if data["whole"] else ", broken off"
        used = f", {data['input_tokens']:,} tokens in, {data['output_tokens']:,} out"
        return text.append(f"{said}{used}, {data['duration_ms']:,} ms", style="dim")

    def _egress(self, data: dict[str, Any]) -> Text:
        made = data["outcome"] == "carried"
        text = Text("network    ", style="green" if made else "red")
        text.append(one_line(f"{data['host']}:{data['port']}"), style="bold").append(" ")
        if not made:
            return text.append(
                f"{data['outcome']}: {one_line(str(data['cause'])).replace('_', ' ')}", style="red"
            )
        bytes_ = f"{data['sent_bytes']:,} bytes out, {data['received_bytes']:,} in"
        return text.append(f"{bytes_}, {data['duration_ms']:,} ms", style="dim")


def _end_of(text: str) -> str:
    """One line as it is; of several the last ones, where a traceback names its error."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return one_line(text)
    left_out = [f"({len(lines) - _LAST_LINES} lines before)"] if len(lines) > _LAST_LINES else []
    return "".join(f"\n    {one_line(line)}" for line in [*left_out, *lines[-_LAST_LINES:]])


def _other(data: dict[str, Any]) -> Text:
    return Text(one_line(json.dumps(data, ensure_ascii=False)), style="dim")
