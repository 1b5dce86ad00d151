"""One spelling for each agent, resource and capability."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.network.capabilities import Capability, declared
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.domain.network.resources import resource_key


@pytest.mark.parametrize("text", ["Blue", "blue", "BLUE", "\uff22lue", "blu\u1d49"])
def test_names_that_differ_by_case_or_form_are_one_name(text: str):
    """BR-135: one owner per normalised name."""
    assert normal_name(text) == "blue"


@pytest.mark.parametrize(
    "text",
    ["", "Blue ", " blue", "\u0412lue", "x" * 65, "x" * 300, "a/b", "a\nb", "-a", "a.", "caf\u00e9", "a b"],
)
def test_odd_names_are_refused(text: str):
    """BR-135: blanks, other alphabets, long names, slashes and newlines are no names."""
    refused = normal_name(text)
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid_name"
    assert len(refused.message) < 300


@pytest.mark.parametrize(
    "text",
    [
        "git@Host.org:o/r.git",
        "https://host.org/o/r",
        "https://host.org/o/r.git/",
        "https://user:token@host.org/o/r?x=1#y",
        "ssh://git@host.org/o/r",
        "ssh://git@host.org:22/o/r.git",
        "https://host.org:443/o/r",
        "HOST.org/o/r",
        "host.org//o/r/",
        "  host.org/o/r ",
    ],
)
def test_every_address_of_a_repository_is_one_key(text: str):
    assert resource_key(text) == "host.org/o/r"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("https://host.org:8443/o/r", "host.org:8443/o/r"),
        ("git@host.org:Group/Sub/R", "host.org/Group/Sub/R"),
        ("billing-db", "billing-db"),
        ("https://host.org/O/r", "host.org/O/r"),
    ],
)
def test_ports_nested_groups_and_path_case_stay_apart(text: str, key: str):
    assert resource_key(text) == key
    assert resource_key(key) == key


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "./r", "../r", "/srv/r", "~/r", "file:///srv/r", "C:\\r", "a\nb", "http://", "x" * 513],
)
def test_local_and_empty_resources_are_refused(text: str):
    refused = resource_key(text)
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid_resource"


def test_a_capability_without_an_id_gets_a_slug_of_its_name():
    assert declared(
        [{"name": "Code Review (Python)", "description": " Reads diffs. "}, {"id": "X", "name": "y"}]
    ) == (
        Capability("code-review-python", "Code Review (Python)", "Reads diffs."),
        Capability("X", "y"),
    )


def test_an_empty_declaration_is_a_declaration():
    assert declared([]) == ()


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([{"name": "a"}] * 2, "capabilities[1] has the id 'a'"),
        ([{"name": "Code review"}, {"id": "code-review", "name": "b"}], "capabilities[1] has the id"),
        ([{"name": f"n{number}"} for number in range(21)], "21 capabilities"),
        ([{"name": "x" * 65}], "capabilities[0].name"),
        ([{"name": " "}], "capabilities[0].name"),
        ([{"name": "x", "id": "y" * 65}], "needs an id"),
        ([{"name": "\U0001f600"}], "needs an id"),
        ([{"name": "x", "description": "d" * 501}], "capabilities[0].description"),
    ],
)
def test_a_declaration_out_of_bounds_names_the_item(items: list[dict[str, Any]], says: str):
    refused = declared(items)
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid_capabilities"
    assert says in refused.message
