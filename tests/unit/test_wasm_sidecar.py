"""The sidecar file is followed to the letter, or refused (DC-2)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from wasm_tools.limits import Limits
from wasm_tools.sidecar import BadSidecar, parse_sidecar, read_sidecar, sidecar_path


def write(directory: Path, text: str) -> Path:
    path = directory / "tool.capabilities.json"
    path.write_text(text)
    return path


SLOW = {"calls": 5, "per_s": 60}


def test_it_lies_beside_the_component() -> None:
    assert sidecar_path(Path("/tools/a.b.wasm")) == Path("/tools/a.b.capabilities.json")


def test_an_absent_file_changes_nothing(tmp_path: Path) -> None:
    sidecar = read_sidecar(tmp_path / "absent.json")
    assert sidecar.lowered(Limits()) == Limits()
    assert sidecar.description is None
    assert not sidecar.overrides_schema
    assert (sidecar.approval, sidecar.read_only, sidecar.idempotent) == ("never", False, False)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """PD-41: whoever reads it would hang, and with it all that is loaded after."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(BadSidecar, match="not a regular file"):
        read_sidecar(tmp_path / "pipe.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "valid dictionary"),
        ("{}", "version: Field required"),
        ('{"version":2}', "version: Input should be 1"),
        ('{"version":"1"}', "version: Input should be 1"),
        ('{"version":1,"version":1}', "'version' stands twice"),
        ('{"version":1,"limits":{"timeout_s":NaN}}', "NaN"),
        ('{"version":1,"aproval":"always"}', "aproval: unknown key; did you mean 'approval'?"),
        ('{"version":1,"approval":"by_params"}', "approval: Input should be 'never' or 'always'"),
        ('{"version":1,"read_only":"yes"}', "read_only: Input should be a valid boolean"),
        ('{"version":1,"parameters":{}}', "parameters: unknown key"),
        ('{"version":1,"limits":{"fuel":1}}', "limits.fuel: unknown key"),
        ('{"version":1,"limits":{"memory_bytes":0}}', "limits.memory_bytes: Input should be greater than 0"),
        (
            '{"version":1,"limits":{"memory_bytes":1.5}}',
            "limits.memory_bytes: Input should be a valid integer",
        ),
        ("[" * 100_000, "not JSON"),
        ('{"version":1,"description":"\\ud800"}', "half of a surrogate pair"),
        (f'{{"version":1,"description":"{"x" * 600_000}"}}', "over 512 KiB"),
    ],
)
def test_anything_but_the_known_keys_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadSidecar) as caught:
        read_sidecar(write(tmp_path, text))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


FULL = """{"version": 1,
  "http": {
    "allow": [{"host": "API.example.org.", "path_prefix": "/repos", "methods": ["get", "POST"]}, {"host": "*.b.org"}],
    "credentials": {"main": {"secret": "github", "in": "bearer", "hosts": ["api.example.org"]}},
    "rate_limit": {"calls": 5, "per_s": 60},
    "allow_private": true
  },
  "secrets": {"exists": ["github"]},
  "workspace": {"read": ["docs/", "."]},
  "tools": {"search": "notes_search", "calc": "calc"}
}"""


def test_what_it_asks_for_is_told_in_full(tmp_path: Path) -> None:
    assert read_sidecar(write(tmp_path, FULL)).asks() == (
        "send GET, POST to https://api.example.org/repos",
        "send GET, HEAD to https://*.b.org/",
        "reach private and local addresses too",
        "have the secret github added to requests to api.example.org; it never sees the value",
        "know whether the secret github exists",
        "read docs in the workspace, as the job began",
        "read the whole workspace, as the job began",
        "call the tool notes_search (as search)",
        "call the tool calc",
    )
    assert read_sidecar(tmp_path / "absent.json").asks() == ()


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        ('"http":{"alow":[]}', "http.alow: unknown key; did you mean 'allow'?"),
        ('"http":{"allow":[{"host":"https://a.org"}]}', "http.allow.0.host: a host is a name"),
        ('"http":{"allow":[{"host":"a.*.org"}]}', "a host is a name"),
        ('"http":{"allow":[{"host":"a.org","scheme":"ftp"}]}', "http.allow.0.scheme"),
        ('"http":{"allow":[{"host":"a.org","path_prefix":"x"}]}', "a path prefix starts with /"),
        ('"http":{"allow":[{"host":"a.org","path_prefix":"/a/../b"}]}', "a path prefix starts with /"),
        ('"http":{"allow":[{"host":"a.org","methods":["CONNECT"]}]}', "not a method"),
        ('"http":{"credentials":{"a":{"secret":"s","in":"bearer","hosts":["*"]}}}', "named in full"),
        ('"http":{"credentials":{"a":{"secret":"s","in":"bearer","hosts":[]}}}', "at least 1 item"),
        ('"http":{"credentials":{"a":{"secret":"s","in":"header","hosts":["a.org"]}}}', "needs 'name'"),
        (
            '"http":{"credentials":{"a":{"secret":"s","in":"basic","name":"abc","hosts":["a.org"]}}}',
            "takes no",
        ),
        (
            '"http":{"credentials":{"a":{"secret":"s","in":"header","name":"Host","hosts":["a.org"]}}}',
            "no header for a credential",
        ),
        ('"http":{"rate_limit":{"calls":0,"per_s":1}}', "http.rate_limit.calls"),
        ('"workspace":{"read":["../x"]}', "a path inside the workspace"),
        ('"workspace":{"read":["/etc"]}', "a path inside the workspace"),
        ('"tools":{"a":""}', "tools.a"),
        ('"secrets":{"exists":"github"}', "secrets.exists"),
    ],
)
def test_a_grant_that_means_nothing_is_an_error(tmp_path: Path, grant: str, said: str) -> None:
    with pytest.raises(BadSidecar) as caught:
        read_sidecar(write(tmp_path, f'{{"version":1,{grant}}}'))
    assert said in str(caught.value)


def test_a_limit_can_be_lowered_only(tmp_path: Path) -> None:
    lower = read_sidecar(write(tmp_path, '{"version":1,"limits":{"timeout_s":2,"memory_bytes":1048576}}'))
    assert lower.lowered(Limits()) == Limits(timeout_s=2, memory_bytes=1 << 20)
    raised = read_sidecar(write(tmp_path, '{"version":1,"limits":{"timeout_s":60}}'))
    with pytest.raises(BadSidecar, match=r"limits\.timeout_s is 60; a sidecar can only lower it from 30"):
        raised.lowered(Limits())


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        ({}, {}, []),
        ({}, {"limits": {"timeout_s": 30}, "description": "x", "read_only": True}, []),
        (
            {"secrets": {"exists": ["a"]}},
            {"secrets": {"exists": ["a", "b"]}},
            ["know whether the secret b exists"],
        ),
        ({"secrets": {"exists": ["a", "b"]}}, {"secrets": {"exists": ["b"]}}, []),
        (
            {"http": {"allow": [{"host": "a.org", "path_prefix": "/x"}]}},
            {"http": {"allow": [{"host": "a.org"}]}},
            ["send GET, HEAD to https://a.org/"],
        ),
        (
            {"http": {"allow": [{"host": "a.org"}]}},
            {"http": {"allow": [{"host": "a.org"}], "allow_private": True}},
            ["reach private and local addresses too"],
        ),
        ({"approval": "always"}, {}, ["be called without the approval that it needed"]),
        ({}, {"approval": "always"}, []),
        ({"http": {"rate_limit": SLOW}}, {"http": {}}, ["send more than 5 requests in 60 s"]),
        (
            {"http": {"rate_limit": SLOW}},
            {"http": {"rate_limit": {"calls": 5, "per_s": 30}}},
            ["send more than 5 requests in 60 s"],
        ),
        ({"http": {"rate_limit": SLOW}}, {"http": {"rate_limit": {"calls": 1, "per_s": 60}}}, []),
    ],
)
def test_what_a_change_asks_for_is_what_was_not_agreed_to(
    before: dict[str, Any], after: dict[str, Any], more: list[str]
) -> None:
    """PD-42: less is no question, and neither are limits, which stay under the operator's own."""
    agreed, now = (parse_sidecar(json.dumps({"version": 1, **one}).encode()) for one in (before, after))
    assert list(now.beyond(agreed)) == more
