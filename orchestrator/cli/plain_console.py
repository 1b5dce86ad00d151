"""A console on which only its owner can colour: the text of what is printed holds no control character."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment

from orchestrator.cli.visible import visible


def plain(console: Console) -> Console:
    """The same console; from now on every text on it is `visible`, wherever in a table or line it stands."""
    console.push_render_hook(_Hook())
    return console


class _Hook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(one) for one in renderables]


class _Visible:
    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
