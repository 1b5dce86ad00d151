"""Secrets taken out of text, whatever form they turn up in."""

from __future__ import annotations

import base64
import html
import json
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tool_registry.redaction import Redactor, masked

SECRETS = {
    "PLAIN": "correct-horse-battery",
    "REGEX": "a.b*c+(d)[e]{2}|^$\\",
    "COLON": "sk-ab:cd+ef/gh==",
    "BASIC": "Basic dXNlcjpwYXNz",
    "QUOTED": 'he said "no"\nand left\\',
    "UNICODE": "jelszó-árvíztűrő",
    "SHORTEST": "q7Zp4x",
    "SPACED": "two words & more?",
}
PEM = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj{n:02}AgEAAoIBAQ" for n in range(20))
    + "\n-----END PRIVATE KEY-----\n"
)


def only(name: str) -> Redactor:
    return Redactor({name: SECRETS[name]}, patterns=False)


@pytest.mark.parametrize("name", SECRETS)
def test_a_known_secret_is_replaced_by_its_name_and_the_rest_stays(name: str) -> None:
    """BR-121: by value, whole, whatever characters are in it."""
    assert only(name).text(f"before {SECRETS[name]} after") == f"before [redacted:{name}] after"


@pytest.mark.parametrize("name", SECRETS)
def test_url_encoded_forms_are_replaced(name: str) -> None:
    """BR-121."""
    value = SECRETS[name]
    component = quote(value, safe="!*'()")
    for form in (quote(value), quote(value, safe=""), quote_plus(value), component):
        shown = only(name).text(f"https://host/?key={form}&x=1")
        assert shown == f"https://host/?key=[redacted:{name}]&x=1"


def test_lower_case_percent_codes_are_replaced_too() -> None:
    assert only("COLON").text("k=sk-ab%3acd%2bef%2fgh%3d%3d;") == "k=[redacted:COLON];"


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
@pytest.mark.parametrize("after", ["", "\n", ":x", "!!!"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_forms_are_replaced_at_every_offset(name: str, before: str, after: str, encode: Any) -> None:
    """BR-121: alone or within a longer text; nothing of the middle is left to decode."""
    text = encode(f"{before}{SECRETS[name]}{after}".encode()).decode()
    shown = only(name).text(f"Authorization: {text}")
    assert f"[redacted:{name}]" in shown
    left = shown.removeprefix("Authorization: ").partition(f"[redacted:{name}]")
    assert len(left[0]) <= len(before) * 4 / 3 + 3
    assert len(left[2]) <= len(after) * 4 / 3 + 6


@pytest.mark.parametrize("width", [64, 76])
def test_base64_broken_into_lines_is_replaced(width: int) -> None:
    whole = base64.b64encode(PEM.encode()).decode()
    lines = [whole[at : at + width] for at in range(0, len(whole), width)]
    shown = Redactor({"KEY": PEM}, patterns=False).text("\n".join(lines))
    assert shown == "\n".join(["[redacted:KEY]"] * len(lines))


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_inside_json_text_is_replaced(name: str, ascii_only: bool) -> None:
    text = json.dumps({"value": SECRETS[name]}, ensure_ascii=ascii_only)
    assert json.loads(only(name).text(text)) == {"value": f"[redacted:{name}]"}


AWKWARD = "ab/cd&e<f'g\"h+x==Z9"


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(AWKWARD).replace("/", "\\/"),
        json.dumps(AWKWARD).replace("&", "\\u0026").replace("<", "\\u003c"),
        json.dumps(AWKWARD).replace("&", "\\u0026").replace("<", "\\u003c").replace("'", "\\u0027"),
        html.escape(AWKWARD),
        html.escape(AWKWARD, quote=False),
        html.escape(AWKWARD).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        quote(quote(AWKWARD, safe=""), safe=""),
        AWKWARD.encode().hex(),
        AWKWARD.encode().hex().upper(),
    ],
)
def test_a_secret_is_known_as_other_programs_write_it(written: str) -> None:
    """BR-095, BR-121: PHP's and Go's JSON, pages of errors, an address within an address, a dump."""
    shown = Redactor({"AWKWARD": AWKWARD}).text(f"before {written} after")
    assert shown.replace('"', "") == "before [redacted:AWKWARD] after"


def test_a_key_of_many_lines_is_replaced_whole_in_json_and_line_by_line() -> None:
    redactor = Redactor({"KEY": PEM}, patterns=False)
    assert redactor.text(f"<{PEM}>") == "<[redacted:KEY]>"
    assert redactor.text(f"<{PEM.strip()}>") == "<[redacted:KEY]>"
    assert redactor.text(json.dumps([PEM])) == '["[redacted:KEY]"]'
    numbered = "\r\n".join(f"{n}: {line}" for n, line in enumerate(PEM.splitlines()))
    assert "MII" not in redactor.text(numbered)
    assert "-----BEGIN PRIVATE KEY-----" in redactor.text("a file starts with -----BEGIN PRIVATE KEY-----")


def test_the_credentials_of_a_header_are_secret_without_their_scheme() -> None:
    assert only("BASIC").text("got dXNlcjpwYXNz") == "got [redacted:BASIC]"


def test_a_secret_within_another_is_named_by_the_longer_one() -> None:
    redactor = Redactor({"SHORT": "abcdef", "LONG": "xx-abcdef-yy"}, patterns=False)
    assert redactor.text("xx-abcdef-yy abcdef") == "[redacted:LONG] [redacted:SHORT]"
    redactor = Redactor({"LONG": "abcdef-yy", "SHORT": "abcdef"}, patterns=False)
    assert redactor.text("abcdef-yy abcdef") == "[redacted:LONG] [redacted:SHORT]"


def test_where_secrets_overlap_nothing_of_either_is_left() -> None:
    redactor = Redactor({"ONE": "abcdef123", "TWO": "123456789"}, patterns=False)
    assert redactor.text("<abcdef123456789>") == "<[redacted:ONE]>"
    assert redactor.text("<" + "x" * 5_000 + "abcdef123456789>") == "<" + "x" * 5_000 + "[redacted:ONE]>"


def test_values_that_are_too_short_would_hit_everything_and_are_left_alone() -> None:
    redactor = Redactor({"PIN": "12345", "EMPTY": ""}, patterns=False)
    assert redactor.text("12345 67") == "12345 67"


def test_a_secret_that_is_no_utf8_is_no_reason_to_fail() -> None:
    redactor = Redactor({"RAW": "bytes-\udcff-here"}, patterns=False)
    assert redactor.text("a bytes-\udcff-here b") == "a [redacted:RAW] b"


def test_every_string_of_a_value_is_searched_and_nothing_else_is_changed() -> None:
    value = {"k-correct-horse-battery": ["correct-horse-battery", 1, None, True, 2.5, {"x": ("y",)}]}
    assert only("PLAIN").value(value) == {
        "k-[redacted:PLAIN]": ["[redacted:PLAIN]", 1, None, True, 2.5, {"x": ["y"]}]
    }


CREDENTIALS = {
    "ANTHROPIC_KEY": "sk-ant-api03-" + "Ab1_" * 8,
    "OPENAI_KEY": "sk-proj-" + "Ab1-" * 8,
    "AWS_KEY": "AKIAIOSFODNN7EXAMPLE",
    "GITHUB_TOKEN": "ghp_" + "a1B2" * 9,
    "GOOGLE_KEY": "AIza" + "a1B2c3D" * 5,
    "SLACK_TOKEN": "xoxb-1234567890-abcdef",
    "STRIPE_KEY": "sk_live_" + "a1B2" * 6,
    "PRIVATE_KEY": PEM.strip().replace("PRIVATE", "RSA PRIVATE"),
    "JWT": ".".join(["eyJhbGciOiJFZERTQSJ9", "eyJzdWIiOiJqb2ItMSJ9", "c2lnbmF0dXJlLWhlcmU"]),
}


@pytest.mark.parametrize("name", CREDENTIALS)
@pytest.mark.parametrize("around", ["{}", "key={};", '"{}"', "a {} b", "[{}]"])
def test_the_shape_of_a_credential_is_known(name: str, around: str) -> None:
    shown = Redactor().text(around.format(CREDENTIALS[name]))
    assert shown == around.format(f"[redacted:{name}]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer aa:bb+cc/dd==ee~ff.gg-hh", "Authorization: [redacted:AUTHORIZATION]"),
        (
            "authorization: Basic dXNlcjpwYXNz\r\nHost: x",
            "authorization: [redacted:AUTHORIZATION]\r\nHost: x",
        ),
        ('{"Authorization": "Bearer abc"}', '{"Authorization": "[redacted:AUTHORIZATION]"}'),
        ("sent bearer abcdefghij:klmnopqrst now", "sent bearer [redacted:BEARER] now"),
        ("GET https://u:p@host/x", "GET https://[redacted:URL_PASSWORD]@host/x"),
        ("postgres://app:s3cr3t@db:5432/x", "postgres://[redacted:URL_PASSWORD]@db:5432/x"),
    ],
)
def test_headers_and_urls_lose_the_whole_credential(text: str, shown: str) -> None:
    """BR-121: not up to an unusual character only."""
    assert Redactor().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a task-management-and-planning-board of the risk-averse-committee-members",
        "sk-learn-compatible-estimators-are-fine",
        "the basic authentication scheme; a bearer of bad news",
        "see http://localhost:8000/users/@me and mailto:a@b.c",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "eyJust a word",
        "the PRIVATE KEY is stored elsewhere",
        "ghosts and xoxo",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor().text(text) == text


def test_a_known_secret_keeps_its_name_where_a_pattern_would_match_too() -> None:
    redactor = Redactor({"TOKEN": "abcdefghijklmnopqrstuvwxyz"})
    text = "Authorization: Bearer abcdefghijklmnopqrstuvwxyz"
    assert redactor.text(text) == "Authorization: Bearer [redacted:TOKEN]"


HOSTILE = {
    "words": "lorem ipsum dolor ",
    "key starts": "sk-",
    "key blocks without an end": "-----BEGIN PRIVATE KEY-----\n",
    "key block headers": "-----BEGIN AAAA ",
    "tokens without an end": "-eyJaaaaaaaaaa",
    "dotted tokens": "eyJaaaaaaaaaa.",
    "bearers": "Bearer aaaaaaaaaaaaaaaaaaa ",
    "headers": "authorization: Basic ",
    "urls": "http://a:b",
    "url runs": "://" + "a" * 300,
    "slack": "xoxb-",
    "github": "ghp_aaaaaaaa",
    "equal characters": "a",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_megabyte_is_searched_in_linear_time(piece: str) -> None:
    """Whatever a tool prints, the event loop is not held: quadratic time would take minutes."""
    redactor = Redactor({**SECRETS, "KEY": PEM, **{f"S{n}": f"secret-number-{n:04}" for n in range(20)}})
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    started = time.thread_time()
    redactor.text(text)
    assert time.thread_time() - started < 4.0


def test_secrets_in_a_long_text_are_all_found() -> None:
    text = "\n".join(f"{n} {SECRETS['PLAIN']} {'x' * 50}" for n in range(2_000))
    assert only("PLAIN").text(text) == text.replace(SECRETS["PLAIN"], "[redacted:PLAIN]")


# --- masking by pointer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "pointer", "shown"),
    [
        ({"a": 1, "b": 2}, "/a", {"a": "[masked]", "b": 2}),
        ({"a": {"b": 1, "c": 2}}, "/a/b", {"a": {"b": "[masked]", "c": 2}}),
        ({"a": {"b": {"c": [1]}}}, "/a/b", {"a": {"b": "[masked]"}}),
        ({"x/y": 1, "~": 2}, "/x~1y", {"x/y": "[masked]", "~": 2}),
        ({"~": 2, "~1": 3}, "/~01", {"~": 2, "~1": "[masked]"}),
        ({"a": 1}, "/b", {"a": 1}),
        ({"a": 1}, "", {"a": "[masked]"}),
        ({"a": "the token itself"}, "/a/b", {"a": "[masked]"}),
        ({"a": [{"b": 1}]}, "/a/0/b", {"a": "[masked]"}),
        ({"a": None}, "/a", {"a": None}),
        ({"a": None}, "/a/b", {"a": None}),
        ({"a": False}, "/a", {"a": "[masked]"}),
    ],
)
def test_what_a_pointer_names_is_masked(params: dict[str, Any], pointer: str, shown: Any) -> None:
    before = json.dumps(params)
    assert masked(params, [pointer]) == shown
    assert json.dumps(params) == before


def test_several_pointers_are_masked_together() -> None:
    assert masked({"a": {"b": 1, "c": 2}, "d": 3}, ["/a/b", "/a/c", "/d"]) == {
        "a": {"b": "[masked]", "c": "[masked]"},
        "d": "[masked]",
    }


def test_a_value_learnt_later_is_replaced_like_the_first_ones() -> None:
    """BR-121: in every form, and what was known stays known."""
    redactor = only("PLAIN")
    redactor.learn({"LATER": SECRETS["COLON"], "TINY": "abc"})
    text = f"{SECRETS['PLAIN']} {quote(SECRETS['COLON'], safe='')} abc"
    assert redactor.text(text) == "[redacted:PLAIN] [redacted:LATER] abc"
    assert redactor.suspects(json.dumps([SECRETS["COLON"]]))
