"""`tools/check` over the API: what a request of a hosted job would carry (PD-22)."""

from __future__ import annotations

from typing import Any

from tests.fakes.registry_tools import RegistryTool
from tests.support.orchestrator import Wired, problem
from tool_registry.names import LOCAL_NAMES
from tool_registry.registry import Offer
from tool_registry.tool import Approval


async def check(orchestrator: Wired, *names: str, **asked: Any) -> dict[str, list[dict[str, Any]]]:
    answer = await orchestrator.operator.post("/api/v1/tools/check", json={"names": names, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_number_of_tools_is_that_of_a_job_s_request(orchestrator: Wired) -> None:
    """What jobs do not see takes no place; the container's own tools do; the last by name are left out."""
    many = [Offer(RegistryTool(f"z_tool_{number:03}")) for number in range(130)]
    gated = Offer(RegistryTool("a_gated", approval=Approval.ALWAYS))
    orchestrator.running.registry.replace("server", [*many, gated])
    listed = (await orchestrator.operator.get("/api/v1/tools")).json()
    seen = sorted([*(one["name"] for one in listed if one["hosted"]), *LOCAL_NAMES])
    beyond = seen[128:]
    found = await check(orchestrator, providers=["openai", "anthropic"])
    refused = {name for name, verdicts in found.items() if verdicts[0]["verdict"] == "refused"}
    assert refused == set(beyond)
    assert "openai takes 128 tools in a request: offer fewer tools" in found[beyond[0]][0]["refusals"][0]
    assert all(verdicts[1]["verdict"] != "refused" for verdicts in found.values())
    assert found["a_gated"][0]["verdict"] != "refused"
    (one,) = (await check(orchestrator, beyond[-1], providers=["openai"]))[beyond[-1]]
    assert one["verdict"] == "refused"


async def test_an_unknown_tool_or_provider_is_an_error(orchestrator: Wired) -> None:
    missing = await orchestrator.operator.post("/api/v1/tools/check", json={"names": ["nothing"]})
    assert (missing.status_code, problem(missing)["code"]) == (404, "not_found")
    unknown = await orchestrator.operator.post("/api/v1/tools/check", json={"providers": ["acme"]})
    assert (unknown.status_code, problem(unknown)["code"]) == (400, "invalid_request")
