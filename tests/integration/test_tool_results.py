"""What a tool answers, up to the model's message and the operator's view (PD-1, PD-23)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from orchestrator.ports.models import ModelMessage
from tests.fakes.model import calls
from tests.fakes.tools import SECRET, FakeTool
from tests.support.orchestrator import Wired
from tool_registry.context import ToolContext
from tool_registry.mcp.output_schema import PromisedOutput
from tool_registry.mcp.result import to_output
from tool_registry.output import ToolOutput
from tool_registry.registry import Offer
from tool_registry.tool import ToolSource, ToolTraits

PNG, WAV, PDF = "iVBORw0KGgo=", base64.b64encode(b"R" * 3_000).decode(), "JVBERi0="
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "downloaded"},
    {
        "type": "resource",
        "resource": {"uri": "file:///w/a.txt", "mimeType": "text/plain", "text": f"BODY-42 {SECRET}"},
    },
    {"type": "resource", "resource": {"uri": "file:///w/a.pdf", "mimeType": "application/pdf", "blob": PDF}},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "audio", "data": WAV, "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "https://h.example/x", "name": "x", "mimeType": "text/csv", "size": 9},
    {"type": "future_kind", "foo": 1},
]
LINES = [
    "downloaded",
    "[resource: text/plain, file:///w/a.txt]",
    "BODY-42 [redacted:OPENAI_API_KEY]",
    "[resource: application/pdf, file:///w/a.pdf, 5 bytes]",
    "[image: image/png, 8 bytes]",
    "[audio: audio/wav, 3,000 bytes]",
    "[resource_link: text/csv, https://h.example/x, x, 9 bytes]",
    "[content of an unknown kind: {'type': 'future_kind', 'foo': 1}]",
]
PROMISED = PromisedOutput('{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}')


def offer(orchestrator: Wired, answer: dict[str, Any]) -> None:
    """A tool `server` that answers as an MCP server would."""

    async def act(_params: dict[str, Any], _context: ToolContext) -> ToolOutput:
        return to_output(answer, PROMISED if "structuredContent" in answer else None)

    tool = FakeTool("server", act, {"type": "object", "properties": {"a": {"type": "string"}}})
    tool.traits = ToolTraits(ToolSource.MCP, "mcp:server", read_only=True)
    orchestrator.running.registry.replace("mcp:server", [Offer(tool)])


async def told(orchestrator: Wired) -> tuple[ModelMessage, dict[str, Any]]:
    """The message that the model gets of a call, and the timeline's event."""
    orchestrator.model.then(calls(("1", "server", "{}")))
    job_id = await orchestrator.new_job(mode="in-process")
    assert (await orchestrator.ended(job_id, within_s=20.0)).state == "completed"
    (message,) = [one for one in orchestrator.model.requests[1].messages if one.role == "tool"]
    events = await orchestrator.events(job_id, "tool_result")
    return message, events[0]


def text_and_media(message: ModelMessage) -> tuple[str, list[dict[str, Any]]]:
    if isinstance(message.content, str):
        return message.content, []
    parts: list[dict[str, Any]] = [dict(part) for part in message.content]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(texts), [part for part in parts if part["type"] != "text"]


async def by_hand(orchestrator: Wired, name: str = "server", **params: Any) -> dict[str, Any]:
    answer = await orchestrator.operator.post(f"/api/v1/tools/{name}/call", json={"params": params})
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


async def test_every_kind_of_block_reaches_the_model_once_and_in_order(orchestrator: Wired) -> None:
    """BR-064: a line each, the image as an image, no base64 in the text, no secret anywhere."""
    offer(orchestrator, {"content": BLOCKS})
    message, event = await told(orchestrator)
    text, media = text_and_media(message)
    assert text.splitlines() == LINES
    assert [(part["type"], part["media_type"], part["data"]) for part in media] == [
        ("image", "image/png", PNG)
    ]
    assert event["preview"].splitlines() == LINES
    output = await by_hand(orchestrator)
    assert output["result"].splitlines() == LINES
    kinds = [block["type"] for block in output["content"]]
    assert kinds == ["resource", "resource", "image", "audio", "resource_link"]
    assert SECRET not in json.dumps(output)


@pytest.mark.parametrize(
    ("answer", "shown", "is_error"),
    [
        ({"content": [], "structuredContent": {"id": 3}}, '{"id":3}', False),
        (
            {"content": [{"type": "text", "text": "found"}], "structuredContent": {"id": 3}},
            'found\n{"id":3}',
            False,
        ),
        (
            {"content": [], "structuredContent": {"id": "x"}},
            '{"id":"x"}\n[note: the structured content does not fit the tool\'s outputSchema: at /id:',
            False,
        ),
        ({"isError": True, "content": [{"type": "text", "text": "quota exceeded"}]}, "quota exceeded", True),
        (
            {"isError": True, "content": [{"type": "text", "text": "no id"}], "structuredContent": {"e": 4}},
            "no id",
            True,
        ),
    ],
)
async def test_structured_content_and_failures_reach_model_and_operator(
    orchestrator: Wired, answer: dict[str, Any], shown: str, is_error: bool
) -> None:
    """BR-062: the text of a failure is exactly the tool's."""
    offer(orchestrator, answer)
    message, event = await told(orchestrator)
    text, _ = text_and_media(message)
    assert text.startswith(shown)
    assert (message.is_error, event["is_error"], event["verdict"]) == (
        is_error,
        is_error,
        "error" if is_error else "ok",
    )
    output = await by_hand(orchestrator)
    assert output["is_error"] is is_error


async def test_a_block_that_is_too_large_is_kept_where_the_agent_can_read_it(orchestrator: Wired) -> None:
    """BR-065: one large image; the request stays small and says where the whole lies."""
    data = base64.b64encode(b"\x89" * 6_000_000).decode()
    offer(orchestrator, {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
    message, _ = await told(orchestrator)
    text, media = text_and_media(message)
    assert media == []
    line, note = text.splitlines()
    assert line == "[image: image/png, 6,000,000 bytes]"
    told_of: dict[str, Any] = json.loads(note)
    assert (told_of["type"], told_of["was"]) == ("omitted", "image")
    assert told_of["artifact"].startswith("/")


async def test_a_large_text_is_cut_for_the_model_and_whole_for_the_operator(orchestrator: Wired) -> None:
    """BR-065: head, tail, sizes and where the rest is; a call by hand is for a person, who may want all."""
    text = "HEAD\n" + "".join(f"row {number}\n" for number in range(60_000)) + "TAIL"
    offer(orchestrator, {"content": [{"type": "text", "text": text}]})
    message, event = await told(orchestrator)
    shown, _ = text_and_media(message)
    assert shown.startswith("HEAD\n")
    assert "TAIL" in shown[-300:]
    assert len(shown) < 70_000
    assert "the whole is in /" in shown
    assert event["truncated"]
    assert (await by_hand(orchestrator))["result"] == text
