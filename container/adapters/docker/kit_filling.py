"""Runs once, as root, in a container of the worker image: fills a volume with a worker that needs no more.

In the volume, which jobs see at `/opt/portside`, lie the worker's Python with its libraries, `git` and
`timeout`, every shared library that they load, and the loader that finds those libraries and no others. So a
job can run in any Linux image of the same processor, with another C library or without Python too.

Nothing but Python's own library is used here: the worker image has no more of Portside's than the worker.
"""

# ruff: noqa: T201 -- what it says is read from the container's output

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path("/fill")
HOME = Path("/opt/portside")
PROGRAMS = ("git", "timeout")
READY = "ready"
_LOADER = HOME / "ld"
_LIBRARIES = HOME / "lib"
_SITE = HOME / "site-packages"
_CACHE = HOME / "c"
# As long as what they replace, or shorter: they are written over it, in the loader's own text.
_REPLACED = {b"/etc/ld.so.cache": str(_CACHE).encode(), b"/etc/ld.so.preload": str(HOME / "none").encode()}
_LEFT_OUT = shutil.ignore_patterns(
    *(
        "site-packages",
        "dist-packages",
        "test",
        "idlelib",
        "turtledemo",
        "ensurepip",
        "config-*",
        "__pycache__",
    ),
)
_CHECK = "import worker.process, worker.bridge.pipe, worker.command.session, mcp, jsonschema_rs, ssl, sqlite3"


class KitError(Exception):
    """The volume can't be filled from this image."""


def fill() -> None:
    """Fill the volume at `/fill/opt/portside`, unless it is filled.

    Raises:
        KitError: this image has no glibc, or what was made does not run.
    """
    target = _out(HOME)
    if (target / READY).exists():
        return
    for left in target.iterdir():  # of a filling that was cut off
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    python = Path(sys.executable).resolve()
    loader = _interpreter(python)
    _copy_trees()
    programs = {"python3": python, **{name: _program(name) for name in PROGRAMS}}
    _copy_libraries(loader, [*programs.values(), *target.rglob("*.so"), *target.rglob("*.so.*")])
    _copy_programs(programs, loader)
    _copy_loader(loader)
    _index_libraries()
    _check()
    (target / READY).touch()


def _copy_trees() -> None:
    """Python's own library and the worker's packages, compiled: nothing can be written there later."""
    standard = Path(sysconfig.get_path("stdlib"))
    own = _out(_LIBRARIES / standard.name)
    shutil.copytree(standard, own, ignore=_LEFT_OUT, ignore_dangling_symlinks=True)
    custom = own / "sitecustomize.py"
    custom.unlink(missing_ok=True)
    custom.write_text(f"import sys\nsys.path.append({str(_SITE)!r})\n")
    compileall.compile_dir(
        own,
        quiet=2,
        stripdir=ROOT,
        prependdir="/",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    shutil.copytree(_SITE, _out(_SITE))


def _copy_libraries(loader: str, files: list[Path]) -> None:
    """What these files load, as the loader itself finds it."""
    for file in files:
        traced = subprocess.run(
            [loader, str(file)],
            env={"LD_TRACE_LOADED_OBJECTS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        for name, found in re.findall(r"^\s*(\S+) => (/\S+) \(", traced.stdout, re.MULTILINE):
            place = _out(_LIBRARIES / name)
            if not place.exists() and not Path(found).is_relative_to(ROOT):
                shutil.copy(found, place)


def _copy_programs(programs: dict[str, Path], loader: str) -> None:
    """Each with our loader in the place of the one that it names."""
    for name, program in programs.items():
        content = program.read_bytes()
        place = _out(HOME / "bin" / name)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(_written_over(content, {loader.encode(): str(_LOADER).encode()}, program))
        place.chmod(0o755)


def _copy_loader(loader: str) -> None:
    """It looks for libraries where its own index says, and preloads nothing that an image names."""
    place = _out(_LOADER)
    place.write_bytes(_written_over(Path(loader).read_bytes(), _REPLACED, Path(loader)))
    place.chmod(0o755)


def _index_libraries() -> None:
    listed = _out(HOME / "ld.conf")
    listed.write_text(f"{_LIBRARIES}\n")
    _run("ldconfig", "-r", str(ROOT), "-X", "-i", "-f", str(HOME / listed.name), "-C", str(_CACHE))
    listed.unlink()


def _check() -> None:
    """Run each program where there is nothing but the volume."""
    (ROOT / "dev" / "null").touch()  # git asks for it
    for command in (
        ["python3", "-P", "-c", _CHECK],
        ["git", "--version"],
        ["timeout", "1", "/opt/portside/bin/git"],
    ):
        program = str(HOME / "bin" / command[0])
        done = subprocess.run(
            [program, *command[1:]],
            env={},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: os.chroot(ROOT),
        )
        if done.returncode not in {0, 1}:
            raise KitError(f"{command[0]} does not run from the volume: {done.stderr.strip()[-500:]}")


def _written_over(content: bytes, replaced: dict[bytes, bytes], source: Path) -> bytes:
    for old, new in replaced.items():
        if content.count(old + b"\0") != 1 or len(new) > len(old):
            raise KitError(f"{source} is not as glibc makes it: {old.decode()} is not there once")
        content = content.replace(old + b"\0", new.ljust(len(old) + 1, b"\0"))
    return content


def _interpreter(program: Path) -> str:
    """The loader that a program names."""
    found = re.search(rb"(/lib(?:64)?/ld-linux[^\0]+)\0", program.read_bytes())
    if found is None:
        raise KitError(
            f"{program} is not made for glibc; build the worker image on a base that is: --base IMAGE"
        )
    return found[1].decode()


def _program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise KitError(f"the worker image has no {name}")
    return Path(found).resolve()


def _out(path: Path) -> Path:
    return ROOT / path.relative_to("/")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KitError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    try:
        fill()
    except (KitError, OSError) as error:
        print(error)
        sys.exit(1)
