"""Names of agents, groups and networks: one spelling each."""

from __future__ import annotations

import re
import unicodedata

from orchestrator.domain.network.refusals import Refusal

# ASCII only: letters of two alphabets that look the same must never name two agents.
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


def normal_name(text: str) -> str | Refusal:
    """The one spelling of a name: NFKC, case folded.

    Two texts name the same agent exactly when their normal names are equal.

    Returns:
        1 to 64 of `a-z 0-9 . _ -`, beginning and ending with a letter or digit; or `invalid_name`.
    """
    name = unicodedata.normalize("NFKC", text).casefold()
    if _NAME.fullmatch(name):
        return name
    shown = text if len(text) <= 64 else text[:61] + "..."
    return Refusal(
        "invalid_name",
        f"{shown!r} can't be a name: use 1 to 64 of the letters a-z, digits, '.', '_' and '-', "
        "beginning and ending with a letter or digit",
    )
