"""How a rule says no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule's no, for the asking model to act on.

    Attributes:
        code: stable machine-readable name, such as `claim_conflict`.
        message: what is wrong and what to do.
        details: further JSON fields that belong to the code.
    """

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


def not_found(kind: str, name: str) -> Refusal:
    """There is no such thing in the caller's network; another network's things don't exist either."""
    return Refusal("not_found", f"there is no {kind} {name!r} in this network", {"kind": kind})
