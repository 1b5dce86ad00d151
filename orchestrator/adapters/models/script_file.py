"""Reading a script's file, with one clear error for whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from orchestrator.adapters.models.placeholders import names_in
from orchestrator.adapters.models.script import Document, Script
from orchestrator.domain.located_yaml import LocatedYaml, YamlFault

_UNKNOWN = "unknown key; docs/how-to/script-a-model.md lists the known ones"


class ScriptError(Exception):
    """A script can't be used; the message is one line that names the file, the line and the fault."""


def load_script(path: Path) -> Script:
    """Read a script.

    Raises:
        ScriptError: the file can't be read, is no YAML, holds an unknown or repeated key or a value of
            the wrong kind, or uses `${name}` where nothing was captured before.
    """
    try:
        found = LocatedYaml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise ScriptError(f"can't read the script {path}: {reason}") from None
    except YamlFault as fault:
        where = path.name if fault.line is None else f"{path.name} line {fault.line}"
        raise ScriptError(f"{where}: {fault.message}") from None
    try:
        document = Document.model_validate(found.value)
    except ValidationError as fault:
        raise ScriptError(_first_fault(path.name, found, fault)) from None
    turns = tuple(document.turns)
    lines = tuple(found.line(("turns", index)) for index in range(len(turns)))
    script = Script(path.name, turns, lines)
    _refuse_unknown_placeholders(script)
    return script


def _first_fault(name: str, found: LocatedYaml, fault: ValidationError) -> str:
    error = fault.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"]) or "the document"
    message = _UNKNOWN if error["type"] == "extra_forbidden" else error["msg"]
    return f"{name} line {found.line(error['loc'])}: {where}: {message}"


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
