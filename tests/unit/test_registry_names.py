"""Names of tools: legal, reserved, stable (PD-2)."""

from __future__ import annotations

import pytest

from tests.fakes.registry_tools import RegistryTool
from tool_registry.errors import DuplicateTool, IllegalName, ProtectedName
from tool_registry.names import LEGAL, NameRequest, assign_names, may_hold
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.tool import ToolSource


def named(*requests: NameRequest) -> list[str]:
    names = assign_names(requests)
    return [names[request] for request in requests]


def test_a_legal_free_name_is_kept() -> None:
    assert named(NameRequest("github", "search", "github_search")) == ["github_search"]


def test_odd_names_of_one_server_become_legal_different_and_stable() -> None:
    """BR-058."""
    server = "team docs.v2"
    originals = [
        "admin.users/list",
        "admin_users_list",
        "admin.users_list",
        "x" * 70,
        "x" * 69 + "y",
        "résumé",
    ]
    requests = [NameRequest(server, original, f"{server}_{original}") for original in originals]
    names = named(*requests)
    assert all(LEGAL.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)
    assert names == list(reversed(named(*reversed(requests))))
    assert names[-1] == "team_docs_v2_r_sum_"
    assert all(name.startswith("team_docs_v2_admin_users_list_") for name in names[:3])


def test_every_rival_gets_a_suffix() -> None:
    """BR-059: none of them wins."""
    first, second = named(NameRequest("mail_a", "send", "send"), NameRequest("mail_b", "send", "send"))
    assert first != second
    assert {first[:5], second[:5]} == {"send_"}


def test_a_name_that_is_protocol_never_moves() -> None:
    fixed = NameRequest("core", "inbox", "inbox", fixed=True)
    names = named(NameRequest("mail", "inbox", "inbox"), fixed)
    assert names[1] == "inbox"
    assert names[0].startswith("inbox_")


def test_a_suffixed_name_that_meets_anothers_own_name_moves_both() -> None:
    """A tool that is called as another's suffix would make it replaces nothing."""
    rivals = [NameRequest("mail_a", "send", "send"), NameRequest("mail_b", "send", "send")]
    squatter = NameRequest("evil", "x", named(*rivals)[0])
    names = named(*rivals, squatter)
    assert len(set(names)) == 3
    assert all(LEGAL.fullmatch(name) for name in names)


PROTECTED = [
    "shell",
    "read_file",
    "write_file",
    "list_dir",
    "apply_patch",
    "finish",
    "network_inbox",
    "network_anything",
    "control_stop",
    "search_for_agents",
    "send_collaboration_request",
    "check_collaboration_result",
    "portside_tools_add",
]


@pytest.mark.parametrize("name", PROTECTED)
@pytest.mark.parametrize("source", [ToolSource.MCP, ToolSource.WASM])
def test_a_reserved_name_is_refused_and_both_owners_are_named(name: str, source: ToolSource) -> None:
    """BR-059: built-ins can't be replaced."""
    registry = ToolRegistry()
    with pytest.raises(ProtectedName) as caught:
        registry.register(RegistryTool(name, source=source, owner="evil"))
    assert "evil" in caught.value.message
    assert any(
        f"reserved for {owner} tools" in caught.value.message for owner in ("local", "network", "management")
    )
    assert registry.entries() == ()


@pytest.mark.parametrize("also", ["shell", "shell two"])
def test_a_reserved_name_is_refused_even_where_its_holder_or_a_rival_would_move_it(also: str) -> None:
    registry = ToolRegistry()
    registry.register(RegistryTool("shell", source=ToolSource.LOCAL, owner="worker"))
    replaced = registry.replace(
        "evil",
        [
            Offer(RegistryTool("shell", owner="evil", original_name="one")),
            Offer(RegistryTool("shell", owner="evil", original_name=also)),
            Offer(RegistryTool("fine", owner="evil")),
        ],
    )
    assert replaced.registered == ("fine",)
    assert [type(one.error) for one in replaced.refused] == [ProtectedName, ProtectedName]


@pytest.mark.parametrize(
    ("name", "source", "verdict"),
    [
        ("network_inbox", ToolSource.NETWORK, True),
        ("search_for_agents", ToolSource.NETWORK, True),
        ("shell", ToolSource.LOCAL, True),
        ("shell", ToolSource.NETWORK, False),
        ("portside_x", ToolSource.MANAGEMENT, True),
        ("network_inbox", ToolSource.PROXY, True),
        ("control_x", ToolSource.PROXY, True),
        ("portside_x", ToolSource.PROXY, True),
        ("shell", ToolSource.PROXY, False),
        ("finish", ToolSource.PROXY, False),
        ("network_inbox", ToolSource.LOCAL, False),
        ("networked", ToolSource.MCP, True),
        ("Shell", ToolSource.MCP, True),
    ],
)
def test_each_source_may_hold_its_own_names(name: str, source: ToolSource, verdict: bool) -> None:
    assert may_hold(name, source) is verdict


@pytest.mark.parametrize("name", ["", "   ", "\t\n"])
@pytest.mark.parametrize("source", [ToolSource.MCP, ToolSource.NETWORK])
def test_a_tool_without_a_name_is_refused(name: str, source: ToolSource) -> None:
    """BR-058."""
    with pytest.raises(IllegalName):
        ToolRegistry().register(RegistryTool(name, source=source))


@pytest.mark.parametrize("name", ["has space", "x" * 65, "dot.ted", "ünder"])
def test_a_name_that_is_protocol_must_be_legal_as_it_is(name: str) -> None:
    with pytest.raises(IllegalName):
        ToolRegistry().register(RegistryTool(name, source=ToolSource.PROXY, owner="orchestrator"))


def test_one_owner_can_not_offer_a_name_twice() -> None:
    """BR-059: the first definition is kept, and the second one is reported."""
    registry = ToolRegistry()
    first, second = RegistryTool("send", description="first"), RegistryTool("send", description="second")
    replaced = registry.replace("server", [Offer(first), Offer(second)])
    assert [type(one.error) for one in replaced.refused] == [DuplicateTool]
    entry = registry.get("send")
    assert entry is not None
    assert entry.definition.description == "first"
    with pytest.raises(DuplicateTool):
        registry.register(second)


def test_one_original_under_two_proposals_is_a_duplicate() -> None:
    offers = [Offer(RegistryTool(name, original_name="send")) for name in ("a.b", "a_b")]
    assert len(ToolRegistry().replace("server", offers).refused) == 1


def test_two_names_that_can_not_move_are_refused_and_both_owners_named() -> None:
    registry = ToolRegistry()
    registry.register(RegistryTool("job_note", source=ToolSource.NETWORK, owner="one"))
    with pytest.raises(DuplicateTool, match="two and one both offer 'job_note'"):
        registry.register(RegistryTool("job_note", source=ToolSource.NETWORK, owner="two"))
    refused = registry.replace(
        "two",
        [
            Offer(RegistryTool("same", source=ToolSource.NETWORK, owner="two", original_name=original))
            for original in ("a", "b")
        ],
    ).refused
    assert [type(one.error) for one in refused] == [DuplicateTool]
    assert [entry.name for entry in registry.entries()] == ["job_note", "same"]


def test_a_name_of_half_a_surrogate_pair_is_made_legal() -> None:
    registry = ToolRegistry()
    registry.register(RegistryTool("a\ud800", owner="one"))
    registry.register(RegistryTool("a\ud800", owner="two"))
    assert all(LEGAL.fullmatch(entry.name) for entry in registry.entries())
    assert len(registry.entries()) == 2
