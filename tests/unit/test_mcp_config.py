"""The `mcpServers` file: what is taken, and what a wrong one is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tool_registry.mcp.config import McpConfigError, load_config, parse_config, parse_server

COMMAND = {"command": "npx"}


def _refusal(entry: dict[str, Any]) -> str:
    with pytest.raises(McpConfigError) as refused:
        parse_config(json.dumps({"mcpServers": {"github": entry}}))
    return refused.value.message


def test_the_common_form_is_taken_with_its_defaults():
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"K": "${secret:GH}"}}
    config = parse_config(json.dumps({"mcpServers": {"github": entry}})).servers["github"]
    assert config.args == ("-y", "server")
    assert config.env == {"K": "${secret:GH}"}
    assert (config.enabled, config.timeout_s, config.approval, config.instructions) == (
        True,
        60.0,
        None,
        True,
    )


def test_a_missing_file_is_an_empty_configuration(tmp_path: Path):
    assert load_config(tmp_path / "mcp.json").servers == {}


def test_a_file_is_named_in_its_errors(tmp_path: Path):
    path = tmp_path / "mcp.json"
    path.write_text("{")
    with pytest.raises(McpConfigError, match=r"mcp\.json is not usable JSON"):
        load_config(path)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "either `command`"),
        ({"command": "a", "url": "http://h/"}, "either `command`"),
        ({"url": "http://h/", "env": {"A": "b"}}, "belong to `command`"),
        ({**COMMAND, "headers": {"A": "b"}}, "belong to `url`"),
        (
            {**COMMAND, "timeout": 3},
            "mcpServers.github.timeout is not a known setting; did you mean 'timeout_s'?",
        ),
        (
            {**COMMAND, "env": {"N": 1}},
            'mcpServers.github.env.N must be text in double quotes, not 1 (write "1")',
        ),
        ({**COMMAND, "env": {"N": True}}, 'env.N must be text in double quotes, not true (write "true")'),
        ({**COMMAND, "env": {"N": None}}, "env.N must be text"),
        ({**COMMAND, "env": {"N": "${HOME}/x"}}, "${HOME} is not replaced"),
        ({**COMMAND, "env": {"N": "a\nb"}}, "line breaks"),
        ({**COMMAND, "args": ["--token", "${secret:T}"]}, "`env` and `headers` only"),
        ({**COMMAND, "timeout_s": 0}, "timeout_s"),
        ({**COMMAND, "timeout_s": "60"}, "timeout_s"),
        ({**COMMAND, "approval": "sometimes"}, "approval"),
        ({**COMMAND, "enabled": "yes"}, "enabled"),
        ({"url": "ftp://h/"}, "http:// or https://"),
        ({"url": "https://user:pass@h/"}, "credentials"),
        ({"url": "https://h/ws", "type": "websocket"}, "'stdio', 'http'"),
    ],
)
def test_a_wrong_entry_is_told_what_to_do(entry: dict[str, Any], said: str):
    """BR-071: non-string values in `env`, among others, give a clear error."""
    assert said in _refusal(entry)
    assert "pass@" not in _refusal(entry)


def test_all_problems_are_told_at_once():
    message = _refusal({**COMMAND, "env": {"N": 1}, "wat": 2})
    assert "env.N" in message
    assert "wat" in message


def test_a_name_given_twice_is_refused():
    """BR-059: nothing is silently overwritten."""
    with pytest.raises(McpConfigError, match="'a' is given twice"):
        parse_config('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 65])
def test_a_server_name_that_can_not_be_shown_is_refused(name: str):
    with pytest.raises(McpConfigError, match="no server name"):
        parse_config(json.dumps({"mcpServers": {name: COMMAND}}))


def test_include_and_exclude_work_on_the_servers_own_names():
    config = parse_server({**COMMAND, "include": ["get_*", "search"], "exclude": ["get_secret"]}, name="s")
    wanted = [name for name in ("get_a", "get_secret", "search", "delete") if config.wants(name)]
    assert wanted == ["get_a", "search"]


def test_approval_is_chosen_for_all_or_by_tool():
    assert parse_server({**COMMAND, "approval": "always"}, name="s").approval_for("x") == "always"
    by_tool = parse_server({**COMMAND, "approval": {"x": "never"}}, name="s")
    assert (by_tool.approval_for("x"), by_tool.approval_for("y")) == ("never", None)
