"""Secret values taken out of text: the match is replaced, never the whole."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote

from pydantic_core import to_json

MIN_SECRET_CHARS = 6
_MIN_LINE_CHARS = 16
_LINE_WIDTHS = (64, 76)
_HTML_IN_JSON = (re.compile("[&<>]"), re.compile("[&<>']"))
_URI_COMPONENT_SAFE = "!*'()"  # what JavaScript's encodeURIComponent leaves alone beside Python's own

# A key stands at the start of a word, and no match begins within another's run of characters: a text full
# of starts and without an end is still read once.
_START = r"(?<![A-Za-z0-9_-])"
_SCHEME = r"(?:[Bb]asic|[Bb]earer|[Dd]igest|[Tt]oken)"
# A name, texts of which one stands wherever the pattern matches, and the pattern.
_PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "PRIVATE_KEY",
        ("PRIVATE KEY",),
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----))+-----END [A-Z ]*PRIVATE KEY-----",
    ),
    (
        "AUTHORIZATION",
        ("uthorization",),
        r"(?:(?<=uthorization: )|(?<=uthorization\": \")|(?<=uthorization\":\"))"
        + _SCHEME
        + r" (?!\[redacted:)[^\r\n\"']+",
    ),
    ("BEARER", ("earer ",), r"(?<=[Bb]earer )(?!\[redacted:)[^\s\"'<>\\]{20,}"),
    ("ANTHROPIC_KEY", ("sk-ant-",), _START + r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("OPENAI_KEY", ("sk-",), _START + r"sk-(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,}"),
    ("AWS_KEY", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (
        "GITHUB_TOKEN",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    ),
    ("GOOGLE_KEY", ("AIza",), r"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("SLACK_TOKEN", ("xox",), _START + r"xox[abprs]-[0-9A-Za-z-]{10,}"),
    ("STRIPE_KEY", ("k_live_",), r"\b[rs]k_live_[0-9A-Za-z]{20,}"),
    ("JWT", ("eyJ",), _START + r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("URL_PASSWORD", ("://",), r"(?<=://)[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>\[]{1,1000}(?=@)"),
)

_MASKED = "[masked]"


class Redactor:
    """Replaces known secret values, their encoded forms, and well-known credential shapes.

    Args:
        known: secret name to value; values under 6 characters are left alone, they would hit everything.
        patterns: also look for credential shapes that nobody told us of.
    """

    def __init__(self, known: Mapping[str, str] | None = None, *, patterns: bool = True) -> None:
        self._names: dict[str, str] = {}
        self._marks = tuple(mark for _, marks, _ in (_PATTERNS if patterns else ()) for mark in marks)
        self._patterns = tuple(
            (f"[redacted:{name}]", marks, re.compile(pattern))
            for name, marks, pattern in (_PATTERNS if patterns else ())
        )
        self.learn(known or {})

    def learn(self, known: Mapping[str, str]) -> None:
        """Replace these values too from now on; what was known before stays known."""
        for name, value in known.items():
            if len(value) >= MIN_SECRET_CHARS:
                self._names |= dict.fromkeys(_forms(value), name)

    def text(self, text: str) -> str:
        """The text with every secret replaced by `[redacted:NAME]`."""
        if self._holds_known(text):
            text = self._without_known(text)
        for stand_in, marks, pattern in self._patterns:
            for mark in marks:
                if mark in text:
                    text = pattern.sub(stand_in, text)
                    break
        return text

    def suspects(self, text: str) -> bool:
        """Whether a secret may stand in a text, or in a JSON value that this is the JSON text of.

        False is certain: known values are looked for as JSON writes them too, and it writes no mark of a
        pattern in another way.
        """
        for mark in self._marks:
            if mark in text:
                return True
        return self._holds_known(text)

    def _holds_known(self, text: str) -> bool:
        # Measured: a plain search for each form beats one pattern of them all from the first secret on.
        return any(form in text for form in self._names)

    def _without_known(self, text: str) -> str:
        """Replace every stretch that known forms cover, also where one overlaps another."""
        found = sorted(
            (start, -len(form), name) for form, name in self._names.items() for start in _starts(form, text)
        )
        parts: list[str] = []
        end = 0
        for start, negative_length, name in found:
            if start >= end:
                parts += [text[end:start], f"[redacted:{name}]"]
            end = max(end, start - negative_length)
        return "".join([*parts, text[end:]])

    def value(self, value: Any) -> Any:
        """The same for every string, keys too, in a JSON value; most hold no secret and stay as they are."""
        try:
            text = to_json(value).decode()
        except ValueError:  # half a surrogate pair, which the walk takes as it is
            return self._walked(value)
        return self._walked(value) if self.suspects(text) else value

    def _walked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {self.text(key): self._walked(item) for key, item in items}
        if isinstance(value, list | tuple):
            return [self._walked(item) for item in cast("Iterable[Any]", value)]
        return value


def _starts(form: str, text: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + len(form))


def _forms(value: str) -> set[str]:
    """A secret as it may turn up: as it is, in parts, inside JSON, URL-encoded, in base64."""
    plain = {value, value.strip()}
    scheme, _, credentials = value.strip().partition(" ")
    if scheme.lower() in {"basic", "bearer", "token"}:
        plain.add(credentials.strip())
    forms = set(plain)
    for one in plain:
        forms |= _escaped(one) | _base64(one.encode("utf-8", "surrogatepass"))
    if "-----BEGIN " in value:  # a key printed line by line, or with other line ends
        forms.update(line for line in value.split() if len(line) >= _MIN_LINE_CHARS and line[0] != "-")
    return {form for form in forms if len(form) >= MIN_SECRET_CHARS}


def _escaped(value: str) -> set[str]:
    """As JSON strings, HTML and URLs hold it, and in hexadecimal."""
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    # PHP writes a slash so, Go and others what HTML reads.
    escaped |= {one.replace("/", "\\/") for one in escaped}
    escaped |= {marks.sub(_by_number, one) for one in escaped for marks in _HTML_IN_JSON}
    for quote_mark in ('"', "&quot;", "&#34;"):
        for apostrophe in ("'", "&#x27;", "&#39;"):
            text = html.escape(value, quote=False).replace('"', quote_mark)
            escaped.add(text.replace("'", apostrophe))
    for safe in ("", "/", _URI_COMPONENT_SAFE):
        encoded = quote(value, safe=safe, errors="surrogatepass")
        lower = re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), encoded)
        escaped |= {encoded, encoded.replace("%20", "+"), lower, quote(encoded, safe="")}
    digits = value.encode("utf-8", "surrogatepass").hex()
    return escaped | {digits, digits.upper()}


def _by_number(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _base64(raw: bytes) -> set[str]:
    """In base64, alone and at each of the three offsets within a longer text; both alphabets."""
    alone = base64.b64encode(raw).decode()
    found = {alone, alone.rstrip("=")}
    for width in _LINE_WIDTHS:  # broken into lines, as the usual tools write it
        found |= (
            {alone[at : at + width] for at in range(0, len(alone), width)} if len(alone) > width else set()
        )
    for offset in range(3):
        bits = 8 * (offset + len(raw))
        whole = base64.b64encode(b"\0" * offset + raw).decode()
        # Characters at either end depend on the neighbours too; those between hold the secret's bits only.
        found.add(whole[-(-8 * offset // 6) : bits // 6])
    found = {one for one in found if len(one) >= MIN_SECRET_CHARS}
    return found | {one.replace("+", "-").replace("/", "_") for one in found}


def masked(params: Mapping[str, Any], pointers: Iterable[str]) -> dict[str, Any]:
    """A copy of arguments with the values at these JSON pointers replaced by `[masked]`.

    Where a pointer leads through something else than an object - a list, or text in an object's place -
    that is masked as a whole: the value may be in it. "" masks every argument.
    """
    copy: dict[str, Any] = dict(params)
    for pointer in pointers:
        if not pointer:
            return dict.fromkeys(copy, _MASKED)
        copy = _masked(copy, [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])
    return copy


def _masked(node: Any, parts: list[str]) -> Any:
    if node is None:
        return None
    if not parts or not isinstance(node, dict):
        return _MASKED
    if parts[0] not in node:
        return cast("Any", node)
    holder = cast("dict[str, Any]", node)
    return {**holder, parts[0]: _masked(holder[parts[0]], parts[1:])}
