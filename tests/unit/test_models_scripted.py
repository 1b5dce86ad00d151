"""The scripted model: turns, expectations, captures, and scripts that are wrong (PD-11)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from orchestrator.adapters.models.script_file import ScriptError, load_script
from orchestrator.adapters.models.scripted import ScriptedModels
from orchestrator.ports.models import (
    ModelAnswer,
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelTool,
    ModelUsage,
)
from tests.fakes.clock import SteppingClock

SHELL = ModelTool("shell", "Run a command.", '{"type":"object","properties":{"command":{"type":"string"}}}')
USER = ModelMessage("user", "Fix the parser.")


class Conversation:
    """Plays a job against a script: answers and results are added as a worker would."""

    def __init__(self, path: Path, script: str) -> None:
        path.write_text(script)
        self.clock = SteppingClock()
        self.model = f"scripted:{path}"
        self.messages = [ModelMessage("system", "You are a coder."), USER]

    async def turn(self, *results: str, is_error: bool = False) -> ModelAnswer:
        """Ask as a fresh process would: nothing is remembered between turns."""
        provider = ScriptedModels(self.clock.sleep)
        answer = await provider.complete(ModelRequest("job-1", self.model, tuple(self.messages), (SHELL,)))
        self.messages.append(ModelMessage("assistant", answer.content, tool_calls=answer.tool_calls))
        for call, result in zip(answer.tool_calls, results, strict=False):
            self.messages.append(ModelMessage("tool", result, tool_call_id=call.id, is_error=is_error))
        return answer


async def test_each_turn_follows_from_the_conversation_so_a_restart_goes_on(tmp_path: Path) -> None:
    script = "turns: [{say: one, repeat: 2}, {say: two, finish_reason: length}]"
    job = Conversation(tmp_path / "s.yaml", script)
    assert [(await job.turn()).content for _ in range(3)] == ["one", "one", "two"]
    with pytest.raises(ModelError, match=r"s\.yaml has ended: its 2 turns are used up") as caught:
        await job.turn()
    assert caught.value.fatal


async def test_a_turn_is_repeated_until_a_text_was_shown_and_not_given_when_it_was_before(
    tmp_path: Path,
) -> None:
    script = "turns: [{say: one}, {say: wait, until: ready, repeat: 3}, {say: two}]"
    job = Conversation(tmp_path / "s.yaml", script)
    assert [(await job.turn()).content for _ in range(3)] == ["one", "wait", "wait"]
    job.messages.append(ModelMessage("user", "I am ready."))
    assert (await job.turn()).content == "two"
    patient = Conversation(tmp_path / "s.yaml", script)
    assert [(await patient.turn()).content for _ in range(5)] == ["one", "wait", "wait", "wait", "two"]
    early = Conversation(tmp_path / "s.yaml", script)
    early.messages.append(ModelMessage("user", "ready"))
    assert [(await early.turn()).content for _ in range(2)] == ["one", "two"]


async def test_a_pattern_captures_from_any_message_the_newest_first(tmp_path: Path) -> None:
    script = "turns: [{say: one}, {capture: {task: {pattern: 'task (\\d+)'}}, say: 'It is ${task}.'}]"
    job = Conversation(tmp_path / "s.yaml", script)
    await job.turn()
    with pytest.raises(ModelError, match="nothing to capture as task: no message is like"):
        await job.turn()
    job.messages += [ModelMessage("user", "task 7"), ModelMessage("user", "task 8")]
    assert (await job.turn()).content == "It is 8."


async def test_calls_arguments_ids_usage_and_delay_are_given_as_written(tmp_path: Path) -> None:
    script = """
turns:
  - say: Look.
    call:
      - {tool: shell, arguments: {command: "ls -l", n: 1}}
      - {tool: shell, arguments: '{command: ls', id: ""}
    usage: {input_tokens: 7, cache_read_tokens: 3}
    delay_s: 2.5
"""
    job = Conversation(tmp_path / "s.yaml", script)
    answer = await job.turn()
    assert [call.arguments for call in answer.tool_calls] == ['{"command":"ls -l","n":1}', "{command: ls"]
    assert [call.id for call in answer.tool_calls] == ["call_1_1", ""]
    assert answer.finish_reason == "tool_calls"
    assert answer.usage == ModelUsage(input_tokens=7, cache_read_tokens=3)
    assert job.clock.sleeps == [2.5]


async def test_captured_values_keep_their_kind_and_reach_later_turns(tmp_path: Path) -> None:
    script = """
turns:
  - call:
      - {tool: network_claim, arguments: {scope: "src/**"}}
      - {tool: shell, arguments: {command: 'echo $${HOME}'}}
  - capture:
      claim: {tool: network_claim, pointer: /claims/0/id}
      ttl: {tool: network_claim, pointer: /ttl~1s}
      said: ""
    say: go on
  - call: [{tool: network_release, arguments: {claimId: "${claim}", list: ["${ttl}", "${said}: ${ttl}s"]}}]
"""
    job = Conversation(tmp_path / "s.yaml", script)
    first = await job.turn('{"claims": [{"id": "c-17"}], "ttl/s": 60}', "plain text")
    assert json.loads(first.tool_calls[1].arguments) == {"command": "echo ${HOME}"}
    await job.turn()
    third = await job.turn()
    assert json.loads(third.tool_calls[0].arguments) == {"claimId": "c-17", "list": [60, "plain text: 60s"]}


async def test_nothing_to_capture_ends_the_job_with_what_was_shown(tmp_path: Path) -> None:
    script = "turns: [{call: [{tool: shell}]}, {capture: {x: /id}, say: hi}]"
    job = Conversation(tmp_path / "s.yaml", script)
    await job.turn('{"no": 1}')
    with pytest.raises(
        ModelError, match=r"turn 2 \(line 1\): nothing to capture as x at '/id'; shown: .*no"
    ) as caught:
        await job.turn()
    assert caught.value.fatal


@pytest.mark.parametrize(
    ("expect", "unmet"),
    [
        ("tools: [shell]", None),
        ("tools: github_search", "expected the tool github_search; shown: shell"),
        ("tools_absent: [shell]", "expected no tool shell; shown: shell"),
        ("schemas: {shell: {type: object, properties: {command: {type: string}}}}", None),
        (
            "schemas: {shell: {properties: {command: {type: string}}, type: object}}",
            "the same values in another order",
        ),
        ("schemas: {shell: {type: object}}", 'expected shell\'s schema {"type":"object"}; shown: '),
        ("schemas: {other: {}}", "expected the tool other"),
        ("system_messages: 1", None),
        ("system_messages: 2", "expected 2 system messages; shown: 1"),
        ("messages_contain: [parser, coder]", None),
        ("messages_contain: lexer", "expected a message with 'lexer'"),
        ("last_tool_result: {contains: passed, matches: '^3 +p', is_error: false, tool: shell}", None),
        ("last_tool_result: {equals: '3 passed'}", None),
        ("last_tool_result: {equals: null}", "expected the tool result null; shown: 3 passed"),
        ("last_tool_result: {contains: failed}", "expected a tool result with 'failed'; shown: 3 passed"),
        ("last_tool_result: {matches: '^p'}", "expected a tool result like '^p'"),
        ("last_tool_result: {is_error: true}", "expected a failed tool result; shown: 3 passed"),
        (
            "last_tool_result: [{contains: '3'}, {tool: other}]",
            "expected a tool result of other; shown: none",
        ),
    ],
)
async def test_an_unmet_expectation_ends_the_job_and_says_what_was_shown(
    tmp_path: Path, expect: str, unmet: str | None
) -> None:
    script = f"turns:\n  - call: [{{tool: shell}}]\n  - expect: {{{expect}}}\n    say: met"
    job = Conversation(tmp_path / "s.yaml", script)
    await job.turn("3 passed")
    if unmet is None:
        assert (await job.turn()).content == "met"
        return
    with pytest.raises(ModelError) as caught:
        await job.turn()
    assert caught.value.message.startswith("scripted model: s.yaml, turn 2 (line 3): ")
    assert unmet in caught.value.message
    assert caught.value.fatal


async def test_json_results_are_compared_as_values_and_kinds_count(tmp_path: Path) -> None:
    expect = "{last_tool_result: {equals: {b: 1, a: [true]}}}"
    script = f"turns: [{{call: [{{tool: shell}}]}}, {{expect: {expect}, say: met}}]"
    job = Conversation(tmp_path / "s.yaml", script)
    await job.turn('{"a": [true], "b": 1}')
    assert (await job.turn()).content == "met"
    other = Conversation(tmp_path / "s.yaml", script)
    await other.turn('{"a": [1], "b": 1}')
    with pytest.raises(ModelError, match="expected the tool result"):
        await other.turn()


async def test_a_failure_is_raised_as_a_provider_would(tmp_path: Path) -> None:
    failure = "{message: too much, status: 429, retryable: true, retry_after_s: 3, cause: overloaded}"
    script = f"turns: [{{error: {failure}}}]"
    with pytest.raises(ModelError, match="too much") as caught:
        await Conversation(tmp_path / "s.yaml", script).turn()
    error = caught.value
    assert (error.status, error.retryable, error.retry_after_s, error.cause, error.fatal) == (
        429,
        True,
        3,
        "overloaded",
        False,
    )


async def test_a_changed_script_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    provider = ScriptedModels()
    request = ModelRequest("job-1", f"scripted:{path}", (USER,))
    path.write_text("turns: [{say: one}]")
    assert (await provider.complete(request)).content == "one"
    path.write_text("turns: [{say: two}]")
    later_ns = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(later_ns, later_ns))
    assert (await provider.complete(request)).content == "two"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("turns: [", "s.yaml line 1: not valid YAML"),
        ("", "s.yaml line 1: the document: "),
        ("turns: []", "s.yaml line 1: turns: "),
        ("turns:\n  - say: x\n    cal: []", "s.yaml line 3: turns.0.cal: unknown key"),
        (
            "turns:\n  - say: x\n  - say: x\n    expect:\n      tolls: [a]",
            "s.yaml line 5: turns.1.expect.tolls: unknown key",
        ),
        ("turns:\n  - say: x\n    say: y", "s.yaml line 3: say: repeated key"),
        (
            "turns:\n  - expect: {}",
            "s.yaml line 2: turns.0: Value error, a turn has say and/or call, or else error",
        ),
        ("turns:\n  - say: x\n    repeat: '2'", "s.yaml line 3: turns.0.repeat: "),
        (
            "turns:\n  - say: x\n    call:\n      - {tool: t, arguments: {when: 2026-01-01}}",
            "s.yaml line 4: ",
        ),
        ("turns:\n  - say: ${nope}", "s.yaml line 2: ${nope} was not captured before; write $${nope}"),
        ("turns:\n  - say: x\n    expect: {last_tool_result: {matches: '('}}", "s.yaml line 3: "),
        ("turns:\n  - say: x\n    capture: {a: {pattern: x}}", "s.yaml line 3: turns.0.capture.a"),
        ("turns: [{say: \x01}]", "s.yaml: not valid YAML"),
    ],
)
def test_a_wrong_script_is_one_line_that_names_the_place(tmp_path: Path, script: str, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(script)
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_script_that_is_not_there_ends_the_job_clearly(tmp_path: Path) -> None:
    request = ModelRequest("job-1", f"scripted:{tmp_path / 'none.yaml'}", (USER,))
    with pytest.raises(ModelError, match=r"can't read the script .*none\.yaml: No such file") as caught:
        await ScriptedModels().complete(request)
    assert caught.value.fatal
