"""DC-1, PD-14: configurations of other MCP clients, read as ours or refused with every reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tool_registry.mcp.config import McpConfigError
from tool_registry.mcp.foreign import ForeignConfig, read_foreign, without_comments

VS_CODE = """{
  // asked for once
  "inputs": [{"type": "promptString", "id": "gh_token", "password": true}],
  "servers": {
    /* a "server" */
    "github": {
      "type": "http",
      "url": "https://example.org/mcp",
      "headers": {"Authorization": "Bearer ${input:gh_token}"},
    },
    "local": {"command": "npx", "args": ["-y", "a-server", "// no comment", ",]"], "dev": {}},
  },
}"""


def read(document: Any) -> ForeignConfig:
    return read_foreign(json.dumps(document), source="their.json")


def refusal(document: Any) -> str:
    with pytest.raises(McpConfigError) as refused:
        read(document)
    return refused.value.message


def test_the_common_form_is_taken_as_it_is():
    entries = {"a": {"command": "x", "args": ["y"], "env": {"N": "1"}}, "b": {"url": "https://h/mcp"}}
    found = read({"mcpServers": entries, "globalShortcut": ""})
    assert found.entries == entries
    assert (found.secrets, found.notes) == ((), ())


def test_vs_codes_form_may_hold_comments_and_asks_for_secrets():
    found = read_foreign(VS_CODE, source="mcp.json")
    assert found.entries["github"]["headers"] == {"Authorization": "Bearer ${secret:gh_token}"}
    assert found.entries["local"]["args"] == ["-y", "a-server", "// no comment", ",]"]
    assert found.secrets == ("gh_token",)
    assert found.notes == ("local: `dev` is passed over",)


def test_settings_of_vs_code_hold_them_deeper():
    assert list(read({"mcp": {"servers": {"a": {"command": "x"}}}, "editor.tabSize": 2}).entries) == ["a"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"serverUrl": "https://h/mcp"}, {"url": "https://h/mcp"}),
        ({"httpUrl": "https://h/mcp"}, {"url": "https://h/mcp"}),
        ({"url": "https://h/sse", "transport": "sse"}, {"url": "https://h/sse", "type": "sse"}),
        ({"command": "x", "disabled": True}, {"command": "x", "enabled": False}),
        ({"command": "x", "disabled": False}, {"command": "x"}),
        ({"command": "x", "env": {"K": "${env:K}"}}, {"command": "x", "env": {"K": "${secret:K}"}}),
        ({"command": "x", "env": {"K": "a ${TOKEN}"}}, {"command": "x", "env": {"K": "a ${secret:TOKEN}"}}),
        ({"command": "x", "alwaysAllow": ["y"], "timeout": 5}, {"command": "x"}),
    ],
)
def test_other_spellings_are_understood(given: dict[str, Any], wanted: dict[str, Any]):
    assert read({"mcpServers": {"a": given}}).entries["a"] == wanted


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "is no object"),
        ({}, "it has nothing"),
        ({"other": 1}, "it has other"),
        (
            {"servers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "x"}}},
            "mcpServers and servers",
        ),
        ({"mcpServers": {}}, "holds no servers"),
        ({"mcpServers": {"a": "x"}}, "server 'a' is not an object"),
        ({"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}, "`envFile` is not read"),
        ({"mcpServers": {"a": {"url": "https://h", "serverUrl": "https://h"}}}, "keep one"),
        ({"mcpServers": {"a": {"comand": "x"}}}, "did you mean 'command'"),
        (
            {"mcpServers": {"a": {"command": "${workspaceFolder}/x"}}},
            "placeholders work in `env` and `headers`",
        ),
        ({"mcpServers": {"a": {"command": "x", "env": {"N": 1}}}}, 'write "1"'),
    ],
)
def test_what_can_not_be_used_is_refused_with_its_place(document: Any, said: str):
    """BR-071: also a value that is no text."""
    message = refusal(document)
    assert said in message
    assert message.startswith("their.json")


def test_every_broken_server_is_named_at_once():
    message = refusal({"mcpServers": {"a": {}, "good": {"command": "x"}, "b": {"command": 1}}})
    assert "server 'a'" in message
    assert "server 'b'" in message
    assert "nothing was taken in" in message


def test_a_key_given_twice_is_refused():
    with pytest.raises(McpConfigError, match="'a' is given twice"):
        read_foreign('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', source="f")


def test_strings_keep_what_looks_like_a_comment():
    text = r'{"a": "http://h/*x*/", "b": "\"//\"", /* c */ "d": [1, 2,], } // end'
    assert json.loads(without_comments(text)) == {"a": "http://h/*x*/", "b": '"//"', "d": [1, 2]}
