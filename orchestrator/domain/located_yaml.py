"""YAML text as values that know their lines, so that a fault can be named where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

_MAX_NODES = 200_000


class YamlFault(Exception):
    """The text can't be used.

    Attributes:
        line: where; None when that can't be told.
        message: what is wrong, without the place.
    """

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class LocatedYaml:
    """One document.

    Attributes:
        value: of plain Python types; None for an empty text.
    """

    def __init__(self, text: str) -> None:
        """Read it.

        Raises:
            YamlFault: it is no YAML, holds several documents, a key twice, or too much.
        """
        try:
            loader = yaml.SafeLoader(text)
            self._node = loader.get_single_node()
            if self._node is not None:
                _check(self._node)
            self.value: Any = loader.construct_document(self._node) if self._node is not None else None  # pyright: ignore[reportUnknownMemberType] - pyyaml's stubs
        except yaml.MarkedYAMLError as fault:
            line = fault.problem_mark.line + 1 if fault.problem_mark else 1
            raise YamlFault(f"not valid YAML: {fault.problem}", line) from None
        except RecursionError:
            raise YamlFault("nested too deeply", None) from None
        except yaml.YAMLError:
            raise YamlFault("not valid YAML: it holds characters that YAML refuses", None) from None

    def line(self, loc: Sequence[str | int]) -> int:
        """The line of the deepest node that `loc` leads to."""
        node = self._node
        line = node.start_mark.line + 1 if node else 1
        for part in loc:
            if isinstance(node, yaml.MappingNode):
                found = [(key, value) for key, value in node.value if key.value == part]
                if found:
                    line, node = found[0][0].start_mark.line + 1, found[0][1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                child: yaml.Node = node.value[part]
                line, node = child.start_mark.line + 1, child
        return line


def _check(root: yaml.Node) -> None:
    """Refuse repeated keys, and what aliases make of a small text: each use of one counts whole.

    Raises:
        YamlFault: with the line.
    """
    waiting, visits = [root], 0
    while waiting:
        node = waiting.pop()
        visits += 1
        if visits > _MAX_NODES:
            raise YamlFault(f"more than {_MAX_NODES:,} values, aliases written out", root.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            _refuse_repeated_keys(node)
            waiting.extend(value for _, value in node.value)


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise YamlFault(f"{key.value}: repeated key", key.start_mark.line + 1)
            seen.add(key.value)
