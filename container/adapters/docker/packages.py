"""Debian packages of this host, installed as root where that is possible, and never through sudo."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from container.engine.errors import EngineUnavailable

_APT = ("apt-get", "install", "--yes", "--no-install-recommends")
_DEADLINE_S = 600.0


def is_debian() -> bool:
    """Whether this system installs its packages with apt."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return False
    names = [
        line.partition("=")[2].strip('"')
        for line in text.splitlines()
        if line.startswith(("ID=", "ID_LIKE="))
    ]
    return bool({"debian", "ubuntu"} & set(" ".join(names).split()))


def how_to_install(*packages: str) -> str:
    """The one command to type, as a sentence."""
    if not is_debian():
        return f"Install {' and '.join(packages)} with this system's package manager."
    return f"Type, as root: {' '.join((*_APT, *packages))}"


def install_packages(*packages: str) -> None:
    """Install Debian packages, as root on Debian or Ubuntu.

    Raises:
        EngineUnavailable: this is not such a place, or apt failed; the message says what to type.
    """
    if not is_debian() or os.geteuid() != 0:
        raise EngineUnavailable(
            f"{' and '.join(packages)} can't be installed here. {how_to_install(*packages)}"
        )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (("apt-get", "update", "--quiet"), (*_APT, *packages)):
        try:
            subprocess.run(step, env=quiet, capture_output=True, text=True, check=True, timeout=_DEADLINE_S)
        except subprocess.CalledProcessError as error:
            raise EngineUnavailable(f"{' '.join(step)} failed: {str(error.stderr).strip()[-500:]}") from error
        except subprocess.TimeoutExpired as error:
            raise EngineUnavailable(f"{' '.join(step)} did not end within {_DEADLINE_S:g} s") from error


def install_docker() -> None:
    """Install `docker.io`; `Raises` as `install_packages`."""
    install_packages("docker.io")
