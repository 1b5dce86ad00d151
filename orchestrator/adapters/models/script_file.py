"""Reading a script's file, with one clear error for whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from orchestrator.adapters.models.placeholders import names_in
from orchestrator.adapters.models.script import Document, Script


class ScriptError(Exception):
    """A script can't be used; the message is one line that names the file, the line and the fault."""


def load_script(path: Path) -> Script:
    """Read a script.

    Raises:
        ScriptError: the file can't be read, is no YAML, holds an unknown or repeated key or a value of
            the wrong kind, or uses `${name}` where nothing was captured before.
    """
    try:
        loader = yaml.SafeLoader(path.read_text("utf-8"))
        node = loader.get_single_node()
        _refuse_repeated_keys(path.name, node)
        value: Any = loader.construct_document(node) if node is not None else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - pyyaml's stubs
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise ScriptError(f"can't read the script {path}: {reason}") from None
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 1
        raise ScriptError(f"{path.name} line {line}: not valid YAML: {fault.problem}") from None
    except yaml.YAMLError:
        raise ScriptError(f"{path.name}: not valid YAML: it holds characters that YAML refuses") from None
    try:
        document = Document.model_validate(value)
    except ValidationError as fault:
        raise ScriptError(_first_fault(path.name, node, fault)) from None
    turns = tuple(document.turns)
    lines = tuple(_line(node, ("turns", index)) for index in range(len(turns)))
    script = Script(path.name, turns, lines)
    _refuse_unknown_placeholders(script)
    return script


def _first_fault(name: str, node: yaml.Node | None, fault: ValidationError) -> str:
    error = fault.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"]) or "the document"
    message = "unknown key" if error["type"] == "extra_forbidden" else error["msg"]
    return f"{name} line {_line(node, error['loc'])}: {where}: {message}"


def _line(node: yaml.Node | None, loc: Sequence[str | int]) -> int:
    """The line of the deepest node that `loc` leads to."""
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


def _refuse_repeated_keys(name: str, node: yaml.Node | None) -> None:
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            _refuse_repeated_keys(name, child)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ScriptError(f"{name} line {key.start_mark.line + 1}: {key.value}: repeated key")
                seen.add(key.value)
            _refuse_repeated_keys(name, value)


def _refuse_unknown_placeholders(script: Script) -> None:
    known: set[str] = set()
    for turn, line in zip(script.turns, script.lines, strict=True):
        known |= set(turn.capture)
        used = [turn.say or "", *(call.arguments for call in turn.call)]
        unknown = [name for value in used for name in names_in(value) if name not in known]
        if unknown:
            raise ScriptError(
                f"{script.name} line {line}: ${{{unknown[0]}}} was not captured before; "
                f"write $${{{unknown[0]}}} for that text itself"
            )
