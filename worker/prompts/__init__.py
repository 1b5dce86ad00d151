"""The texts that models are given; they live in files, not in code."""

from __future__ import annotations

from importlib import resources


def prompt(name: str) -> str:
    """The text of `<name>.txt` beside this module."""
    return resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()
