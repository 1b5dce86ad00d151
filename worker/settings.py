"""What a worker is told at start: `PORTSIDE_<FIELD>` in the environment, or `--field` on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from worker.bridge.pipe import SOCKET


@dataclass(frozen=True, slots=True)
class Settings:
    """A worker's settings; none of them is a secret.

    Attributes:
        job_id: the job to run.
        attempt: which attempt of the job this container is; part of every idempotency key.
        socket: the orchestrator's unix socket.
        token_file: where the job token lies until the orchestrator has seen it used.
        state_dir: private files of the worker: the baseline and the final patch.
        output_dir: where outputs that are too long for the model are kept whole.
        workspace: overrides the root that the job names.
        bridge: the socket of the MCP bridge of a job with a command.
        grace_s: how long a stop may take, from the signal to the end.
        outage_s: how long an unreachable orchestrator is waited for.
        context_tokens: how much of a conversation is sent to the model before it is shortened.
    """

    job_id: str
    attempt: int = 1
    socket: Path = Path("/run/portside/s")
    token_file: Path = Path("/run/portside/token")
    state_dir: Path = Path("/state")
    output_dir: Path = Path("/tmp/portside/out")  # noqa: S108 - the container's own /tmp
    workspace: Path | None = None
    bridge: Path = Path(SOCKET)
    grace_s: float = 20.0
    outage_s: float = 600.0
    context_tokens: int = 120_000


class SettingsError(Exception):
    """A setting is missing or can't be read; the message names it."""


_READERS = {"str": str, "int": int, "float": float, "Path": Path, "Path | None": Path}


def read_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings of the command line, else of the environment, else the defaults.

    Raises:
        SettingsError: a value can't be read, or the job's id is missing.
    """
    parser = argparse.ArgumentParser(prog="python -m worker", allow_abbrev=False)
    for field in fields(Settings):
        parser.add_argument(f"--{field.name.replace('_', '-')}")
    given = vars(parser.parse_args(argv))
    values: dict[str, Any] = {}
    for field in fields(Settings):
        variable = f"PORTSIDE_{field.name.upper()}"
        text = given[field.name] if given[field.name] is not None else environ.get(variable)
        if text:
            values[field.name] = _read(str(field.type), text, variable)
    if "job_id" not in values:
        raise SettingsError("PORTSIDE_JOB_ID is not set: name the job to run")
    return Settings(**values)


def _read(kind: str, text: str, variable: str) -> Any:
    try:
        return _READERS[kind](text)
    except ValueError:
        raise SettingsError(f"{variable} must be {kind}, not {text!r}") from None
