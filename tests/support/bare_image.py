"""An image as a user may bring it: no Python, no git, no bash, another user, and an environment full of traps."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from docker import APIClient

_PROGRAMS = ("sh", "cat", "env", "id", "ls", "mkdir", "printf", "sleep", "touch", "wc")
_LINE = re.compile(r"(?:=> )?(/\S+) \(0x")
ENVIRONMENT = {
    "PATH": "/opt/tools:/bin",
    "GREETING": "hello from the image",
    "LD_PRELOAD": "/opt/tools/nothing.so",
    "LD_LIBRARY_PATH": "/opt/tools/lib",
    "PYTHONPATH": "/opt/tools",
    "PYTHONHOME": "/opt/tools",
}


@pytest.fixture(scope="session")
def bare_image(docker_endpoint: str) -> Iterator[str]:
    """Its name; made of a few programs of this host."""
    name = f"bare-{uuid4().hex[:12]}:1"
    api: Any = APIClient(base_url=docker_endpoint, version="1.41", timeout=300)
    said = [f'ENV {key}="{value}"' for key, value in ENVIRONMENT.items()]
    changes = [*said, "USER 4242", "WORKDIR /opt/tools", 'ENTRYPOINT ["/bin/cat"]', "VOLUME /data"]
    api.import_image_from_data(
        root_of(*_PROGRAMS), repository=name.partition(":")[0], tag="1", changes=changes
    )
    yield name
    api.remove_image(name, force=True)
    api.close()


def root_of(*programs: str) -> bytes:
    """A root file system, as a tar, with these programs in `/bin` and the libraries that they load."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as tar:
        libraries: set[str] = set()
        for name in programs:
            found = shutil.which(name)
            assert found is not None, name
            tar.add(found, f"bin/{name}")
            listed = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout
            libraries.update(_LINE.findall(listed))
        for library in sorted(libraries):
            tar.add(Path(library), library.lstrip("/"))
        tar.add("/bin/true", "opt/tools/tool")
    return packed.getvalue()
