"""What a terminal would show of a program's output."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"  # CSI: cursor and colour
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\|(?=\n))"  # strings: titles, links, pictures
    r"|\x1b[ -/]*[0-~]"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\x07\x1b\n]*\x1b?)?\Z")
_MAX_PENDING = 65_536
_MAX_LINE = 16_384
_WIDEST = 4_096
_SCREEN_LINES = 50


class TerminalText:
    """Turns a stream with colours, carriage returns, backspaces and cursor moves into plain lines.

    The last 50 lines stay open, since a progress display may still move up and rewrite them; older ones
    are given out. Memory is bounded, also for a line that never ends.
    """

    def __init__(self) -> None:
        self._lines: list[str] = [""]
        self._row = 0
        self._column = 0
        self._pending = ""
        self._settled: list[str] = []

    def feed(self, text: str) -> str:
        """Take the next piece; return what can no longer change."""
        text = self._pending + text
        self._pending = ""
        at_end = self._row == len(self._lines) - 1 and self._column == len(self._lines[-1])
        if at_end and not _CONTROL.search(text):
            self._append_plain(text)
        else:
            self._interpret(self._hold_back(text))
        return self._take_settled()

    def release(self) -> str:
        """Return the lines that are whole now; from here on nothing rewrites them."""
        if self._row == len(self._lines) - 1 and self._row:
            self._settled.append("".join(f"{line}\n" for line in self._lines[:-1]))
            self._lines = self._lines[-1:]
            self._row = 0
        return self._take_settled()

    def finish(self) -> str:
        """Return the rest."""
        self._settled.append("\n".join(self._lines))
        self._lines = [""]
        self._row = self._column = 0
        return self._take_settled()

    def _take_settled(self) -> str:
        settled = "".join(self._settled)
        self._settled.clear()
        return settled

    def _hold_back(self, text: str) -> str:
        unfinished = _UNFINISHED.search(text)
        if unfinished is None:
            return text
        if unfinished.end() - unfinished.start() <= _MAX_PENDING:
            self._pending = unfinished[0]
        return text[: unfinished.start()]

    def _append_plain(self, text: str) -> None:
        text = "\n".join(self._lines) + text
        cut = len(text)
        for _ in range(_SCREEN_LINES):
            cut = text.rfind("\n", 0, cut)
            if cut < 0:
                break
        self._settled.append(text[: cut + 1])
        self._lines = text[cut + 1 :].split("\n")
        self._row = len(self._lines) - 1
        self._column = len(self._lines[-1])
        self._settle_long_line()

    def _interpret(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            if token["text"]:
                self._write(token["text"])
            elif token["final"]:
                self._move(token["final"], token["parameters"])
            elif token["control"]:
                self._control(token["control"])

    def _write(self, text: str) -> None:
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)
        self._settle_long_line()

    def _settle_long_line(self) -> None:
        if len(self._lines[-1]) > _MAX_LINE and self._row == len(self._lines) - 1:
            self._settled.append("\n".join(self._lines))
            self._lines = [""]
            self._row = self._column = 0

    def _control(self, control: str) -> None:
        if control == "\n":
            self._row += 1
            self._column = 0
            if self._row == len(self._lines):
                self._lines.append("")
            if len(self._lines) > _SCREEN_LINES:
                self._settled.append(self._lines.pop(0) + "\n")
                self._row -= 1
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)
        elif control == "\0":
            self._write("\\x00")

    def _move(self, final: str, parameters: str) -> None:
        first = parameters.split(";", 1)[0]
        count = min(int(first), _MAX_LINE) if first.isdecimal() else None
        steps = count or 1
        if final == "A":
            self._row = max(0, self._row - steps)
        elif final == "B":
            self._row = min(len(self._lines) - 1, self._row + steps)
        elif final == "C":
            # A cursor goes no farther than any screen is wide: what is written there needs blanks before it.
            self._column = max(self._column, min(self._column + steps, _WIDEST))
        elif final == "D":
            self._column = max(0, self._column - steps)
        elif final == "G":
            self._column = min(steps, _WIDEST) - 1
        elif final == "K":
            self._erase_in_line(count or 0)
        elif final == "J" and not count:
            self._erase_in_line(0)
            del self._lines[self._row + 1 :]

    def _erase_in_line(self, which: int) -> None:
        line = self._lines[self._row]
        if which == 0:
            line = line[: self._column]
        elif which == 1:
            line = " " * min(self._column, len(line)) + line[self._column :]
        else:
            line = ""
        self._lines[self._row] = line
