"""YAML that a person wrote, or somebody who means harm (PD-60)."""

from __future__ import annotations

import pytest

from orchestrator.domain.located_yaml import LocatedYaml, YamlFault

LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "more than 200,000 values"),
        ("a: &a [*a]", "more than 200,000 values"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=["laughs", "itself", "deep"],
)
def test_a_small_text_that_means_much_is_refused(text: str, said: str) -> None:
    """PD-60: at once, and in words."""
    with pytest.raises(YamlFault, match=said):
        LocatedYaml(text)


def test_an_alias_stands_for_what_it_names() -> None:
    """PD-60: they are of use."""
    assert LocatedYaml("a: &a {b: 1}\nc: *a").value == {"a": {"b": 1}, "c": {"b": 1}}
