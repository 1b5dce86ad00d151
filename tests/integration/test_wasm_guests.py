"""The guests that come with the project do what they say (DC-2)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.wasm.guests import CALC, REPOSITORY, WORLD
from tests.support.wasm.projects import node_modules
from tests.support.wasm.site import Page, site
from tests.support.wasm.workshop import Workshop, context, workshop
from tool_registry.errors import ToolTimeout
from tool_registry.schema import CompiledSchema
from tool_registry.tool import Tool
from tool_registry.visibility import ToolState
from wasm_tools.granted_host import Outside
from wasm_tools.loading import load_wasm_tool
from wasm_tools.sidecar import read_sidecar

GUESTS = REPOSITORY / "wasm_tools" / "guests"
BUILT = REPOSITORY / "build" / "guests"

SUMS: list[tuple[dict[str, Any], str]] = [
    ({"expression": "0.1 + 0.2"}, '{"result":"0.3","exact":true}'),
    ({"expression": "1.10 * 1.10"}, '{"result":"1.21","exact":true}'),
    ({"expression": "2 ^ 3 ^ 2 - -1"}, '{"result":"513","exact":true}'),
    ({"expression": "-2^2"}, '{"result":"-4","exact":true}'),
    ({"expression": "2^-3"}, '{"result":"0.125","exact":true}'),
    ({"expression": "-7 % 3"}, '{"result":"-1","exact":true}'),
    ({"expression": "7.5 % 2"}, '{"result":"1.5","exact":true}'),
    ({"expression": "(1/3)*3"}, '{"result":"0.99999999999999999999","exact":false}'),
    ({"expression": "1/8", "scale": 2}, '{"result":"0.12","exact":false}'),
    ({"expression": "1/8", "scale": 2, "rounding": "half_up"}, '{"result":"0.13","exact":false}'),
    ({"expression": "2/3", "scale": 2, "rounding": "down"}, '{"result":"0.66","exact":false}'),
    ({"expression": "-2.5", "scale": 0}, '{"result":"-2","exact":false}'),
    ({"expression": "0.00125/1", "scale": 4}, '{"result":"0.0012","exact":false}'),
    ({"expression": "0 - 0.0"}, '{"result":"0","exact":true}'),
    ({"expression": "1_000\n*\t3"}, '{"result":"3000","exact":true}'),
    ({"expression": "3 \u00d7 4"}, "this does not belong here (column 3 of the expression)"),
    ({"expression": "1/(2-2)"}, "division by zero (column 2 of the expression)"),
    ({"expression": "(1+2"}, "this '(' is never closed (column 1 of the expression)"),
    ({"expression": "1+"}, "the expression ends where a number was expected (column 3 of the expression)"),
    ({"expression": "2^0.5"}, "an exponent has to be a whole number (column 2 of the expression)"),
    ({"expression": "2^100001"}, "an exponent is over 100000 (column 2 of the expression)"),
    ({"expression": "9^9999"}, "a number gets more than 2000 digits; use a smaller exponent or fewer digits"),
    ({"expression": "(" * 200}, "more than 100 nested parentheses or signs (column 101 of the expression)"),
]
DOCUMENT = json.dumps(
    {"items": [{"name": "a", "price": 1.5}, {"name": "b/c", "price": 2}], "o d": {"x~y": None}}
)
QUERIES: list[tuple[str, str]] = [
    ("/items/1/name", '"b/c"'),
    ("/o d/x~0y", "null"),
    (
        "$.items[*].name",
        '[{"pointer": "/items/0/name", "value": "a"}, {"pointer": "/items/1/name", "value": "b/c"}]',
    ),
    ("$..price", '[{"pointer": "/items/0/price", "value": 1.5}, {"pointer": "/items/1/price", "value": 2}]'),
    ("$['o d'].*", '[{"pointer": "/o d/x~0y", "value": null}]'),
    ("$.items[-1].price", '[{"pointer": "/items/1/price", "value": 2}]'),
    ("$.absent", "[]"),
    ("/items/2", "nothing at /items/2; /items is an array of 2"),
    ("items", "a query starts with '/' (pointer) or '$' (path), or is empty for the whole document"),
    ("$.items[", "can't read the path at column 8: '['"),
]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def active(shop: Workshop, path: Path) -> Tool:
    offer = await load_wasm_tool(path, shop.runtime)
    assert offer.state is ToolState.ACTIVE, offer.reason
    return offer.tool


def built(name: str, out: Path, programs: str = "") -> Path:
    search = f"{programs}{os.pathsep}{os.environ['PATH']}"
    command = [GUESTS / name / "build.sh", out]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PATH": search})
    return out


def of_python(name: str) -> Path:
    """A guest in Python, built once for its source."""
    sources = (GUESTS / name / "app.py", GUESTS / name / "build.sh", WORLD)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    kept = BUILT / digest / f"{name}.wasm"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        built(name, kept.with_suffix(".new")).replace(kept)
    return kept


async def with_sidecar(shop: Workshop, name: str, change: dict[str, Any], outside: Outside) -> Tool:
    """A guest under its own capabilities file, its HTTP grant changed for a site of the test's."""
    sidecar = json.loads((GUESTS / name / f"{name}.capabilities.json").read_text())
    sidecar["http"] |= change
    path = shop.directory / f"{name}.wasm"
    shutil.copy(of_python(name), path)
    path.with_name(f"{name}.capabilities.json").write_text(json.dumps(sidecar))
    offer = await load_wasm_tool(path, shop.runtime, outside=outside)
    assert offer.state is ToolState.ACTIVE, offer.reason
    return offer.tool


async def here(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_calc_computes_exactly_and_says_what_is_wrong(shop: Workshop) -> None:
    calc = await active(shop, CALC)
    for params, expected in SUMS:
        output = await calc.execute(params, context())
        assert output.result == expected, params
        assert output.is_error == ("exact" not in expected)


async def test_calcs_schema_refuses_bad_first_calls(shop: Workshop) -> None:
    schema = CompiledSchema((await active(shop, CALC)).definition.parameters_json)
    assert all(schema.accepts(params) for params, _ in SUMS)
    refused: list[dict[str, Any]] = [
        {},
        {"expression": 5},
        {"expression": ""},
        {"expression": "1", "scale": -1},
        {"expression": "1", "scale": 1.5},
        {"expression": "1", "rounding": "up"},
        {"expression": "1", "precision": 3},
    ]
    assert not any(schema.accepts(params) for params in refused)


async def test_calc_built_from_its_source_is_the_committed_one(shop: Workshop) -> None:
    """The committed binary comes from the committed source."""
    missing = [tool for tool in ("clang", "wasm-ld") if shutil.which(tool) is None]
    if missing:
        message = f"{' and '.join(missing)} not found (Debian: clang lld)"
        assert os.environ.get("CI") != "true", message
        pytest.skip(message)
    committed = await active(shop, CALC)
    rebuilt = await active(shop, built("calc", shop.directory / "calc.wasm"))
    assert rebuilt.definition == committed.definition
    for params, _ in SUMS:
        assert await rebuilt.execute(params, context()) == await committed.execute(params, context()), params


@pytest.mark.timeout(300)
async def test_json_query_a_guest_in_python_answers_pointers_and_paths(shop: Workshop) -> None:
    """A component of another language, with a whole interpreter inside and WASI beneath."""
    query = await active(shop, of_python("json_query"))
    schema = CompiledSchema(query.definition.parameters_json)
    for text, expected in QUERIES:
        params = {"document": DOCUMENT, "query": text}
        assert schema.accepts(params)
        assert (await query.execute(params, context())).result == expected, text
    output = await query.execute({"document": "{", "query": ""}, context())
    assert output.is_error
    assert "the document is not JSON" in output.result
    limited = await query.execute({"document": "[1,2,3]", "query": "$[*]", "limit": 1}, context())
    assert limited.result == '[{"pointer": "/0", "value": 1}]'


@pytest.mark.timeout(300)
async def test_text_diff_answers_what_changed(shop: Workshop) -> None:
    diff = await active(shop, of_python("text_diff"))
    changed = await diff.execute(
        {"before": "a\nb\nc\n", "after": "a\nB\nc", "name": "x", "context": 0}, context()
    )
    assert changed.result == (
        "--- a/x\n+++ b/x\n@@ -2,2 +2,2 @@\n-b\n-c\n+B\n+c\n\\ No newline at end of file\n"
    )
    same = await diff.execute({"before": "a\r\n", "after": "a\r\n"}, context())
    assert (same.result, same.is_error) == ("", False)
    too_long = await diff.execute({"before": "\n" * 15_000, "after": "\n" * 15_000}, context())
    assert too_long.is_error
    assert "20,000 lines" in too_long.result


FOUND: list[tuple[dict[str, Any], Any]] = [
    (
        {"pattern": r"(?<year>\d{4})-(\d\d)?", "text": "a 2024-01\nb \u00e9\U0001f600 2025-"},
        {
            "count": 2,
            "matches": [
                {
                    "match": "2024-01",
                    "line": 1,
                    "column": 3,
                    "groups": ["2024", "01"],
                    "named": {"year": "2024"},
                },
                {
                    "match": "2025-",
                    "line": 2,
                    "column": 6,
                    "groups": ["2025", None],
                    "named": {"year": "2025"},
                },
            ],
        },
    ),
    ({"pattern": "^B", "flags": "im", "text": "a\nb"}, [("b", 2, 1)]),
    ({"pattern": "^", "flags": "m", "text": "a\nb\n"}, [("", 1, 1), ("", 2, 1), ("", 3, 1)]),
    ({"pattern": r"(?<=\p{Lu})\p{Ll}", "text": "x\u00c9\u00e9"}, [("\u00e9", 1, 3)]),
    ({"pattern": "a.b", "flags": "s", "text": "a\nb"}, [("a\nb", 1, 1)]),
    ({"pattern": "a", "text": "b"}, []),
]


@pytest.mark.timeout(300)
async def test_regex_a_guest_in_javascript_finds_and_replaces(shop: Workshop) -> None:
    """Also what would never end: the host stops it at the limit of the file beside it."""
    path = built("regex", shop.directory / "regex.wasm", str(node_modules() / ".bin"))
    shutil.copy(GUESTS / "regex" / "regex.capabilities.json", shop.directory)
    regex = await active(shop, path)
    schema = CompiledSchema(regex.definition.parameters_json)
    for params, expected in FOUND:
        assert schema.accepts(params)
        answer = json.loads((await regex.execute(params, context())).result)
        if isinstance(expected, list):
            assert [(one["match"], one["line"], one["column"]) for one in answer["matches"]] == expected
        else:
            assert answer == expected
    swap = {"pattern": r"(\w+)@(\w+)", "text": "x@y, z@w", "replacement": "$2 at $1"}
    swapped = json.loads((await regex.execute(swap, context())).result)
    assert swapped == {"count": 2, "text": "y at x, w at z"}
    few = json.loads((await regex.execute({"pattern": ".", "text": "aaaa", "limit": 2}, context())).result)
    assert (few["count"], len(few["matches"])) == (4, 2)
    broken = await regex.execute({"pattern": "(", "text": ""}, context())
    assert (broken.is_error, broken.result) == (True, "the pattern can't be read: expecting ')'")
    assert not schema.accepts({"pattern": "a", "text": "", "flags": "g"})
    endless = {"pattern": "(a+)+$", "text": "a" * 60 + "b"}
    with pytest.raises(ToolTimeout, match=r"at its time limit of 0\.3 s"):
        await regex.execute(endless, context(deadline=shop.runtime.clock.monotonic() + 0.3))


HTML = b"""<!DOCTYPE html><html><head><title>Title</title><style>p {}</style></head><body>
<nav>menu</nav><h1>Head &amp; more</h1><p>One <b>bold</b>
 word.</p><ul><li>first<li>second</ul><pre>def f():
    return 1</pre><script>evil()</script><a href="/next">on</a></body></html>"""


@pytest.mark.timeout(300)
async def test_http_get_answers_the_readable_text_of_a_page(shop: Workshop) -> None:
    """Against a site on this machine; the file that it comes with allows any public host."""
    pages = {
        "/": Page(HTML, headers={"Content-Type": "text/html; charset=utf-8"}),
        "/plain": Page(b"x" * 500, headers={"Content-Type": "text/plain"}),
        "/image": Page(b"\x89PNG\xff", headers={"Content-Type": "image/png"}),
    }
    with site(dict(pages)) as there:
        rules = {"allow": [{"host": "a.test", "scheme": "http", "port": there.port}], "allow_private": True}
        get = await with_sidecar(shop, "http_get", rules, Outside(resolve=here))
        base = f"http://a.test:{there.port}"
        page = await get.execute({"url": f"{base}/", "links": True}, context())
        assert page.result == (
            "Title\n# Head & more\n\nOne bold word.\n\n- first\n- second\n\ndef f():\n    return 1\n"
            f"on\n\nLinks:\n- on: {base}/next"
        )
        cut = await get.execute({"url": f"{base}/plain", "max_chars": 100}, context())
        assert cut.result == "x" * 100 + "\n[cut: 500 characters in all]"
        answers = [await get.execute({"url": f"{base}{path}"}, context()) for path in ("/image", "/absent")]
        assert [one.is_error for one in answers] == [True, True]
        assert "no text but image/png" in answers[0].result
        assert "answered 404: nothing here" in answers[1].result
        elsewhere = await get.execute({"url": "https://other.test/"}, context())
        assert elsewhere.is_error
        assert "not granted" in elsewhere.result


REPOSITORIES = {
    "total_count": 1,
    "items": [
        {"full_name": "o/n", "html_url": "u", "description": None, "stargazers_count": 3, "language": "C"}
    ],
}
ISSUES = {
    "total_count": 41,
    "incomplete_results": True,
    "items": [
        {
            "repository_url": "https://api.test/repos/o/n",
            "number": number,
            "title": "t",
            "state": "open",
            "html_url": "u",
            "user": {"login": "me"},
            "updated_at": "2026-01-01",
        }
        for number in (7, 8)
    ],
}


@pytest.mark.timeout(300)
async def test_github_search_asks_with_the_operators_token(shop: Workshop) -> None:
    """Against a fake of the API; the token is added by the host and stands nowhere in the guest."""

    async def secret(name: str) -> str | None:
        return "ghs-value-of-the-token" if name == "GITHUB_TOKEN" else None

    with site({}) as there:
        there.pages["/search/repositories"] = Page(json.dumps(REPOSITORIES).encode())
        there.pages["/search/issues"] = Page(json.dumps(ISSUES).encode())
        change = {
            "allow": [{"host": "api.test", "scheme": "http", "port": there.port, "path_prefix": "/search"}],
            "credentials": {"github": {"secret": "GITHUB_TOKEN", "in": "bearer", "hosts": ["api.test"]}},
            "allow_private": True,
        }
        outside = Outside(resolve=here, secret=secret)
        search = await with_sidecar(shop, "github_search", change, outside)
        asked = {"kind": "repositories", "query": "a b&c", "api": f"http://api.test:{there.port}"}
        found = await search.execute(asked, context())
        assert json.loads(found.result)["items"] == [
            {"name": "o/n", "url": "u", "description": None, "stars": 3, "language": "C"}
        ]
        assert there.asked[0].path == "/search/repositories?q=a+b%26c&per_page=10"
        assert there.asked[0].headers["Authorization"] == "Bearer ghs-value-of-the-token"
        issues = json.loads((await search.execute({**asked, "kind": "issues", "limit": 1}, context())).result)
        assert (issues["total"], issues["incomplete"]) == (41, True)
        assert [(one["repository"], one["number"], one["author"]) for one in issues["items"]] == [
            ("o/n", 7, "me")
        ]
        limited = {"X-RateLimit-Remaining": "0"}
        there.pages["/search/issues"] = Page(b'{"message": "slow down"}', 403, limited)
        refused = await search.execute({**asked, "kind": "issues"}, context())
        assert (refused.is_error, refused.result) == (
            True,
            "GitHub's rate limit is used up; try later: slow down",
        )
        elsewhere = await search.execute({"kind": "issues", "query": "x"}, context())
        assert "api.github.com is not among the hosts" in elsewhere.result


@pytest.mark.parametrize("name", ["http_get", "github_search"])
def test_the_capabilities_files_that_come_with_guests_can_be_followed(name: str) -> None:
    sidecar = read_sidecar(GUESTS / name / f"{name}.capabilities.json")
    assert sidecar.asks()
    assert sidecar.http.rate_limit is not None
