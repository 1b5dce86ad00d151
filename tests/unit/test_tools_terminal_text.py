"""What is left of control characters."""

from __future__ import annotations

import pytest

from worker.tools.terminal_text import TerminalText


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("loading...\rdone\x1b[K\n", "done\n"),
        ("aaaaaa\rbb\n", "bbaaaa\n"),
        ("b\bbo\bol\bld _\bu\n", "bold u\n"),
        ("a: 1\nb: 1\n\x1b[2Aa: 2\x1b[K\nb: 2\x1b[K\n", "a: 2\nb: 2\n"),
        ("\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "textlink\n"),
        ("\x1b]unfinished title\nnext\n", "\nnext\n"),
        ("\x1b(B\x1b[1;38;5;196mred\x1b[m\x07\n", "red\n"),
        ("nul\0x\n", "nul\\x00x\n"),
        ("cut \x1b[3", "cut "),
        ("old1\nold2\n\x1b[2A\x1b[Jnew\n", "new\n"),
        ("left\x1b[2Dxx\x1b[1Gy\n", "yexx\n"),
    ],
)
def test_terminal_shows(raw: str, shown: str):
    """BR-036: colours, titles, redrawn lines and backspaces as a terminal would show them."""
    terminal = TerminalText()
    assert terminal.feed(raw) + terminal.finish() == shown


def test_line_without_end_stays_bounded():
    """BR-029: a stream that never ends its line is given out in pieces."""
    terminal = TerminalText()
    given = [terminal.feed("x" * 50_000) for _ in range(10)]
    assert sum(map(len, given)) >= 400_000
    assert "".join(given) + terminal.finish() == "x" * 500_000


def test_whole_lines_can_be_released_before_the_end():
    text = TerminalText()
    assert text.feed("one\ntwo\nthr") == ""
    assert text.release() == "one\ntwo\n"
    assert text.release() == ""
    assert text.feed("ee\r3\n\x1b[A\x1b[Kup") == ""
    assert text.release() == ""
    assert text.finish() == "up\n"
