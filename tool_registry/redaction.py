"""Secret values taken out of text: the match is replaced, never the whole."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote

_MIN_SECRET_CHARS = 6

_PATTERNS = {
    "OPENAI_KEY": r"sk-(?:proj-)?[A-Za-z0-9_-]{20,}",
    "ANTHROPIC_KEY": r"sk-ant-[A-Za-z0-9_-]{20,}",
    "AWS_KEY": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GITHUB_TOKEN": r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{50,}",
    "GOOGLE_KEY": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "SLACK_TOKEN": r"\bxox[abprs]-[0-9A-Za-z-]{10,}",
    "STRIPE_KEY": r"\b[rs]k_live_[0-9A-Za-z]{20,}",
    "PRIVATE_KEY": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----",
    "JWT": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "BEARER": r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{20,}=*",
}
# One of these stands in every text that a pattern can match; most texts hold none, and are done.
_TELLTALES = ("sk-", "AKIA", "ASIA", "gh", "AIza", "xox", "k_live_", "PRIVATE KEY", "eyJ", "earer ")


class Redactor:
    """Replaces known secret values, their encoded forms, and well-known credential shapes.

    Args:
        known: secret name to value; values under 6 characters are left alone, they would hit everything.
        patterns: also look for credential shapes that nobody told us of.
    """

    def __init__(self, known: Mapping[str, str] | None = None, *, patterns: bool = True) -> None:
        forms: dict[str, str] = {}
        for name, value in (known or {}).items():
            if len(value) >= _MIN_SECRET_CHARS:
                forms.update(dict.fromkeys(_forms(value), name))
        self._names = forms
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        groups = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items())
        self._patterns = re.compile(groups) if patterns else None

    def text(self, text: str) -> str:
        """The text with every secret replaced by `[redacted:NAME]`."""
        if len(text) < _MIN_SECRET_CHARS:
            return text
        if self._known is not None:
            text = self._known.sub(lambda match: f"[redacted:{self._names[match[0]]}]", text)
        if self._patterns is not None and _suspicious(text):
            text = self._patterns.sub(lambda match: f"[redacted:{match.lastgroup}]", text)
        return text

    def value(self, value: Any) -> Any:
        """The same for every string, keys too, in a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {self.text(key): self.value(item) for key, item in items}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in cast("Iterable[Any]", value)]
        return value


def _suspicious(text: str) -> bool:
    for mark in _TELLTALES:  # noqa: SIM110 - a generator costs more than the searches
        if mark in text:
            return True
    return False


def _forms(value: str) -> set[str]:
    """A secret as it may turn up: as it is, URL-encoded, in base64 at each of the three offsets."""
    forms = {value, quote(value, safe=""), quote(value)}
    raw = value.encode()
    for offset in range(3):
        padded = b"\0" * offset + raw
        whole = base64.b64encode(padded).decode()
        # Characters at either end depend on the neighbours; the middle does not.
        core = whole[(0, 2, 3)[offset] : (len(padded) // 3) * 4]
        if len(core) >= 8:
            forms.update({core, core.replace("+", "-").replace("/", "_")})
    return {form for form in forms if len(form) >= _MIN_SECRET_CHARS}


def masked(params: Mapping[str, Any], pointers: Iterable[str]) -> dict[str, Any]:
    """A copy of arguments with the values at these JSON pointers replaced by `[masked]`."""
    copy: dict[str, Any] = dict(params)
    for pointer in pointers:
        _mask(copy, [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])
    return copy


def _mask(node: Any, parts: list[str]) -> None:
    if not isinstance(node, dict) or not parts or parts[0] not in node:
        return
    holder = cast("dict[str, Any]", node)
    if len(parts) == 1:
        holder[parts[0]] = "[masked]"
        return
    child = holder[parts[0]]
    if isinstance(child, dict):
        holder[parts[0]] = dict(cast("dict[str, Any]", child))
        _mask(holder[parts[0]], parts[1:])
