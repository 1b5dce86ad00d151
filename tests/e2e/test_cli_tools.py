"""A tool owner at the command line, without a container engine (PD-14, PD-20, PD-21, PD-22)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT, CommandLine, Ran

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

CALC = ROOT / "wasm_tools/guests/calc/calc.wasm"
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": {"type": "object", "properties": {"kid": {"$ref": "#/$defs/Node"}}}},
}
NAMES: dict[str, Any] = {
    "type": "object",
    "required": ["filter[name]"],
    "properties": {
        "filter[name]": {"type": "string"},
        "filter_name_": {"type": "string"},
        "page.size": {"type": "integer"},
        "properties": {"type": "array"},
    },
}
EITHER: dict[str, Any] = {
    "oneOf": [
        {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]
}
SCRIPT = """
turns:
  - call: [{tool: calc, arguments: {expresion: "1 + 1"}}]
  - call:
      - {tool: calc, arguments: {expression: "6 * 7"}}
      - {tool: gated, arguments: {expression: "1"}}
      - {tool: network_discover, arguments: {action: null}}
  - call: [{tool: finish, arguments: {success: "true", summary: done}}]
"""


@pytest.fixture
def desk(tmp_path: Path) -> CommandLine:
    """A home with a plain tool, a gated one, and one whose schema refers to itself."""
    desk = CommandLine(tmp_path / "home", {})
    for name, sidecar in {
        "gated": {"approval": "always"},
        "tree": {"schema": TREE, "description": "a tree"},
        "names": {"schema": NAMES, "description": "d" * 2_000},
        "either": {"schema": EITHER},
        "calc": {},
    }.items():
        desk.add_wasm(CALC)
        tools = desk.home / "tools"
        (tools / "calc.wasm").rename(tools / f"{name}.wasm")
        (tools / f"{name}.capabilities.json").write_text(json.dumps({"version": 1, **sidecar}))
    return desk


def good(ran: Ran) -> Any:
    assert ran.exit_code == 0, ran.out + ran.err
    return json.loads(ran.out)


def test_check_prints_verdict_changes_and_fixes_and_fails_on_a_refusal(desk: CommandLine) -> None:
    """BR-055: the recursive schema stays as given; a provider that can't take it is named."""
    ran = desk.run("tools", "check", "tree", "calc")
    assert ran.exit_code == 1
    lines = ran.out.splitlines()
    assert "tree openai        unchanged" in lines
    assert "tree gemini        refused" in lines
    refusal = lines[lines.index("tree gemini        refused") + 1]
    assert refusal.startswith("  refused: a schema that contains itself can't be told (at /")
    assert refusal.endswith(": write the levels that are needed out")
    assert any(line.startswith("  changed: ") for line in lines)
    assert not any("openai-strict" in line for line in lines)
    told = good(
        desk.run("tools", "check", "tree", "--provider", "openai", "--provider", "anthropic", "--json")
    )
    assert [(one["provider"], one["verdict"]) for one in told["tools"]["tree"]] == [
        ("openai", "unchanged"),
        ("anthropic", "unchanged"),
    ]
    usage = desk.run("tools", "check", "--provider", "acme")
    assert (usage.exit_code, "there are openai, openai-strict, anthropic, gemini, generic" in usage.err) == (
        2,
        True,
    )


def test_check_names_every_change_of_odd_schemas(desk: CommandLine) -> None:
    """BR-057, BR-061: renamed, added, folded, cut; and what strict mode would ask for, when asked."""
    told = good(desk.run("tools", "check", "names", "either", "calc", "--json"))["tools"]
    changes = {
        (name, one["provider"]): " | ".join(one["changes"])
        for name, verdicts in told.items()
        for one in verdicts
    }
    assert "property 'filter[name]' is shown as 'filter_name__" in changes["names", "anthropic"]
    assert "items was added to an array" in changes["names", "openai"]
    assert "the description was cut from 2000 to 1024 characters" in changes["names", "openai"]
    assert "the description was cut" not in changes["names", "anthropic"]
    assert "property 'page.size' is shown as 'page_size'" in changes["names", "gemini"]
    assert changes["either", "generic"] == (
        "type object was set at the root | oneOf at the root was folded into one object"
    )
    assert changes["calc", "openai"] == ""
    strict = desk.run("tools", "check", "names", "--provider", "openai-strict")
    assert strict.exit_code == 1
    assert "give its items a type, or use the plain form, without strict" in strict.out
    shown = json.loads(desk.run("tools", "show", "names", "--json").out)
    assert shown["parameters"] == NAMES


def test_list_explains_every_hidden_tool(desk: CommandLine) -> None:
    shown = desk.run("tools", "list", "--hosted")
    assert "calc" in shown.out
    assert "gated" not in shown.out
    explained = desk.run("tools", "list", "--hosted", "--explain")
    (line,) = [line for line in explained.out.splitlines() if line.startswith("gated")]
    assert "no: approval_required" in line
    assert "--tool-grant" in line
    assert any(line.startswith("calc") and " yes " in line for line in explained.out.splitlines())


def test_a_tool_is_disabled_and_enabled_by_name(desk: CommandLine) -> None:
    """PD-46: another process sees it; a slip of the name is answered with the name."""
    off = desk.run("tools", "disable", "calc")
    assert off.out == "calc is disabled; sandboxed jobs do not see it: an operator disabled it\n"
    call = desk.run("tools", "call", "calc", '{"expression": "1"}')
    assert (call.exit_code, "an operator disabled it" in call.err) == (1, True)
    on = good(desk.run("tools", "enable", "calc", "--json"))
    assert (on["state"], on["hosted"]) == ("active", True)
    slip = desk.run("tools", "disable", "calk")
    assert (slip.exit_code, "did you mean 'calc'?" in slip.err) == (1, True)


def test_a_job_s_contract_and_the_tools_stats_tell_of_first_calls(desk: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    ran = desk.run(
        *("run", "x", "--mode", "in-process", "--model", f"scripted:{script}", "--coerce", "safe"),
        *("--tool-grant", "gated", "--json"),
    )
    assert ran.exit_code == 0, ran.out + ran.err
    job_id = ran.lines[-1]["job"]["id"]
    told = good(desk.run("jobs", "contract", job_id, "--json"))
    assert (told["identical"], told["catalog_hash"]) == (True, told["request_hash"])
    first = {one["tool_name"]: one for one in told["first_calls"]}
    assert {name: one["schema_verdict"] for name, one in first.items()} == {
        "calc": "violates",
        "gated": "fits",
        "network_discover": "fits",
        "finish": "fits",
    }
    shown = desk.run("jobs", "contract", job_id[-8:]).out.splitlines()
    assert any(line.startswith("catalogue      sha256:") for line in shown)
    assert any(line.startswith("first request  sha256:") and "byte-identical" in line for line in shown)
    assert any("did you mean 'expression'?" in line for line in shown)
    assert "network_discover: /action was null, which its schema refuses: dropped" in shown
    assert "finish: /success was a string and is read as boolean" in shown
    (calc,) = good(desk.run("tools", "stats", "calc", "--json"))
    assert (calc["first_call_rate"], calc["calls"], calc["retries_mean"]) == (0.0, 2, 1.0)
    table = desk.run("tools", "stats").out
    assert "0% (0 of 1)" in table
    assert "calc: 1 x /expresion [additionalProperties]" in table
    assert "network_discover: 1 x /action [null dropped]" in table
    missing = desk.run("tools", "stats", "nothing")
    assert (missing.exit_code, "there is no tool named 'nothing'" in missing.err) == (1, True)
