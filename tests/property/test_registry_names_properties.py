"""Names depend on what is offered, and on nothing else (PD-2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tool_registry.names import LEGAL, NameRequest, assign_names

texts = st.text(min_size=1, max_size=80)
few = st.sampled_from(["send", "a.b", "a_b", "a b", "x" * 64, "x" * 65, "x" * 66, "send_" + "0" * 8])
requests = st.builds(NameRequest, st.sampled_from(["one", "two", "three"]), texts | few, texts | few)
offers = st.lists(requests, max_size=12, unique_by=lambda one: (one.owner, one.original))


@given(offers, st.randoms(use_true_random=False))
def test_names_are_legal_different_and_the_same_in_any_order(
    offered: list[NameRequest], random: object
) -> None:
    names = assign_names(offered)
    assert all(LEGAL.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(offered)
    shuffled = list(offered)
    random.shuffle(shuffled)  # type: ignore[attr-defined] - hypothesis' own Random has no public type
    assert assign_names(shuffled) == names


@given(offers, st.data())
def test_names_stay_apart_when_a_tool_is_called_as_anothers_suffixed_name(
    offered: list[NameRequest], data: st.DataObject
) -> None:
    taken = sorted(assign_names(offered).values()) or ["free"]
    squatters = [
        NameRequest("evil", str(number), name)
        for number, name in enumerate(data.draw(st.lists(st.sampled_from(taken), max_size=3)))
    ]
    names = assign_names([*offered, *squatters])
    assert len(set(names.values())) == len(offered) + len(squatters)
    assert all(LEGAL.fullmatch(name) for name in names.values())
