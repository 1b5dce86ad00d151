"""Who sees which tool: one function, every case (HW-6)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.catalogue import build_catalogue
from tool_registry.errors import ToolNotHosted
from tool_registry.registry import ToolRegistry
from tool_registry.tool import Approval, ToolDomain, ToolSource, ToolTraits
from tool_registry.visibility import (
    HIDDEN_BECAUSE,
    Hidden,
    HiddenReason,
    ToolState,
    Visible,
    hosted_visibility,
)

HOSTED = {ToolSource.MCP, ToolSource.WASM, ToolSource.NETWORK}
SURFACES = ("any", "worker", "representative")
REACHED = {("any", "worker"), ("worker", "worker"), ("worker", "agent"), ("representative", "representative")}
EVERY = list(
    product(
        ToolSource,
        ToolDomain,
        ToolState,
        Approval,
        SURFACES,
        ("worker", "agent", "representative"),
        (False, True),
    )
)


def always(_params: Mapping[str, Any]) -> bool:
    return True


def expected(
    source: ToolSource,
    domain: ToolDomain,
    state: ToolState,
    approval: Approval,
    offered: str,
    caller: str,
    granted: bool,
) -> str | None:
    """The same rules, said as a list of what is wrong, most telling first."""
    wrong = [
        ((offered, caller) not in REACHED, "wrong_surface"),
        (domain is ToolDomain.CONTAINER, "container_only"),
        (source is ToolSource.MANAGEMENT, "management"),
        (source not in HOSTED, "source_not_hosted"),
        (state is not ToolState.ACTIVE, str(state)),
        (approval is Approval.ALWAYS and not granted, "not_granted"),
    ]
    return next((reason for applies, reason in wrong if applies), None)


def test_every_kind_of_tool_is_visible_or_hidden_for_the_right_reason() -> None:
    """A job sees mcp, wasm and network tools of the orchestrator that are active and need no approval."""
    for case in EVERY:
        source, domain, state, approval, offered, caller, granted = case
        traits = ToolTraits(source, "owner", domain=domain, approval=approval, surface=offered)
        grants = frozenset({"tool"}) if granted else frozenset[str]()
        verdict = hosted_visibility("tool", traits, state, grants=grants, surface=caller)
        reason = verdict.reason.value if isinstance(verdict, Hidden) else None
        assert reason == expected(*case), case


def test_exactly_the_hosted_sources_are_ever_visible() -> None:
    seen = {
        source
        for source in ToolSource
        if hosted_visibility("t", ToolTraits(source, "o"), ToolState.ACTIVE) == Visible()
    }
    assert seen == HOSTED


def test_a_grant_of_another_tool_opens_nothing() -> None:
    gated = ToolTraits(ToolSource.MCP, "o", approval=Approval.ALWAYS)
    verdict = hosted_visibility("t", gated, ToolState.ACTIVE, grants={"other", "T", "t "})
    assert verdict == Hidden(HiddenReason.NOT_GRANTED)


def test_without_a_job_in_question_a_gated_tool_needs_approval() -> None:
    """What a list of all tools says; a job is told that the grant is what it lacks."""
    gated = ToolTraits(ToolSource.MCP, "o", approval=Approval.ALWAYS)
    assert hosted_visibility("t", gated, ToolState.ACTIVE) == Hidden(HiddenReason.APPROVAL_REQUIRED)


def test_a_grant_does_not_enable_what_is_hidden_for_another_reason() -> None:
    for state in (ToolState.DISABLED, ToolState.NEEDS_SCHEMA, ToolState.FAILED_TO_LOAD):
        verdict = hosted_visibility("t", ToolTraits(ToolSource.MCP, "o"), state, grants={"t"})
        assert isinstance(verdict, Hidden)


def test_every_reason_has_words() -> None:
    assert set(HIDDEN_BECAUSE) == set(HiddenReason)


@pytest.mark.parametrize("state", [ToolState.DISABLED, ToolState.NEEDS_SCHEMA, ToolState.FAILED_TO_LOAD])
async def test_catalogue_and_execution_agree_about_a_state(state: ToolState) -> None:
    stand = CallStand(hosted=True)
    stand.registry.register(RegistryTool(), state=state)
    assert build_catalogue(stand.registry).tools == ()
    with pytest.raises(ToolNotHosted) as caught:
        await stand.call()
    assert caught.value.reason == state.value


async def test_catalogue_and_execution_agree_about_every_source_and_approval() -> None:
    for source, domain, approval, surface in product(ToolSource, ToolDomain, Approval, SURFACES):
        tool = RegistryTool(source=source, domain=domain, approval=approval, surface=surface)
        stand = CallStand(tool, hosted=True)
        advertised = bool(build_catalogue(stand.registry).tools)
        try:
            await stand.call()
        except ToolNotHosted:
            assert not advertised
        else:
            assert advertised


def test_a_tool_whose_approval_depends_on_arguments_is_advertised() -> None:
    registry = ToolRegistry()
    registry.register(RegistryTool(approval=Approval.BY_PARAMS, needs_approval=always))
    assert [tool.name for tool in build_catalogue(registry).tools] == ["tool"]


def test_representatives_and_workers_see_their_own_surface() -> None:
    registry = ToolRegistry()
    for name, surface in (("network_ask", "worker"), ("control_stop", "representative")):
        registry.register(RegistryTool(name, source=ToolSource.NETWORK, surface=surface, owner=name))
    assert [tool.name for tool in build_catalogue(registry).tools] == ["network_ask"]
    control = build_catalogue(registry, surface="representative")
    assert [tool.name for tool in control.tools] == ["control_stop"]
