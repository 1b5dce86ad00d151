"""A new project: a tool that works, to be changed into one's own."""

from __future__ import annotations

import json
from pathlib import Path

from wasm_tools.projects.errors import BadProject
from wasm_tools.projects.project import FILE, LANGUAGES, Language, Project, check_name

_HERE = Path(__file__).resolve().parents[1]
_SCAFFOLDS = _HERE / "scaffolds"
_WORLD = _HERE / "wit" / "world.wit"
_SOURCES: dict[Language, str] = {
    "python": "app.py",
    "javascript": "tool.js",
    "rust": "tool.rs",
    "c": "tool.c",
}
_HINT = "hint.md"  # of a language; it becomes a part of the README
_RENAMED = {"gitignore": ".gitignore"}


def new_project(name: str, language: str, directory: Path) -> Project:
    """Write a project's files into a directory that is made, or is there and empty.

    Raises:
        BadProject: the name or the language can't be had, or something is in the way; nothing was written.
    """
    check_name(name)
    if language not in LANGUAGES:
        raise BadProject(f"there is no scaffold in {language[:40]!r}; there are {', '.join(LANGUAGES)}")
    files = _files(name, language)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise BadProject(f"{directory} is not empty, and nothing was written; choose another with --dir")
        for place, (data, executable) in files.items():
            path = directory / place
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if executable else 0o644)
    except OSError as error:
        raise BadProject(f"{directory} can't be written: {error.strerror}") from None
    return Project(directory.resolve(), name, language)


def _files(name: str, language: Language) -> dict[str, tuple[bytes, bool]]:
    """Every file by its place, and whether it can be run."""
    about = {"version": 1, "name": name, "language": language}
    files = {
        FILE: (f"{json.dumps(about, indent=2)}\n".encode(), False),
        "wit/world.wit": (_WORLD.read_bytes(), False),
    }
    hint = (_SCAFFOLDS / language / _HINT).read_text(encoding="utf-8").strip()
    words = {"@NAME@": name, "@SOURCE@": _SOURCES[language], "@HINT@": hint}
    for folder in (_SCAFFOLDS / "every", _SCAFFOLDS / language):
        for path in sorted(folder.iterdir()):
            if not path.is_file() or path.name == _HINT:
                continue
            text = path.read_text(encoding="utf-8")
            for token, word in words.items():
                text = text.replace(token, word)
            place = _RENAMED.get(path.name, path.name)
            if place == "capabilities.json":
                place = f"{name}.{place}"
            files[place] = (text.encode(), path.suffix == ".sh")
    return files
