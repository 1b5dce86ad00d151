"""Cut and redacted texts keep their promises for any input (BR-065)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tool_registry.redaction import Redactor
from tool_registry.truncation import cut_middle

texts = st.text(max_size=400)
long_texts = st.integers(1, 30).flatmap(lambda times: texts.map(lambda text: text * times))


@given(long_texts, st.integers(0, 3_000), st.none() | st.text(max_size=600))
def test_a_cut_text_keeps_its_bound_and_its_ends(text: str, limit_bytes: int, where: str | None) -> None:
    data = text.encode("utf-8", "replace")
    bound = max(limit_bytes, 512)
    cut = cut_middle(text, limit_bytes, where=where)
    if cut is None:
        assert len(data) <= bound
        return
    assert len(data) > bound
    assert len(cut.text.encode("utf-8")) <= bound
    assert cut.original_bytes == len(data)
    whole = data.decode()
    head, note, tail = cut.text.partition("\n[... ")
    assert note
    assert whole.startswith(head)
    assert whole.endswith(tail.rpartition(" ...]\n")[2])
    assert cut.shown_bytes < cut.original_bytes


secrets = st.text(min_size=6, max_size=20)


@given(st.lists(secrets, min_size=1, max_size=3), texts, texts)
def test_no_secret_is_left_in_any_text(values: list[str], before: str, after: str) -> None:
    redactor = Redactor({f"S{n}": value for n, value in enumerate(values)}, patterns=False)
    shown = redactor.text(before + "".join(values) + after)
    for kept in shown.split("[redacted:"):
        assert not any(value in kept for value in values)


@given(texts)
def test_a_text_without_secrets_is_left_as_it_is(text: str) -> None:
    assert Redactor({"A": "not-in-there-\U0001f512"}, patterns=False).text(text) == text
