"""Loops are found, progress is left alone."""

from __future__ import annotations

from typing import Any

from worker.stuck import Outcome, Repetition, Verdict


def verdicts(turns: list[list[Outcome]]) -> list[Verdict]:
    repetition = Repetition()
    return [repetition.add(turn) for turn in turns]


def one(name: str, result: Any = "same", **arguments: Any) -> list[Outcome]:
    return [Outcome(name, arguments, result)]


def test_the_same_turn_is_noticed_at_five_and_stuck_at_ten() -> None:
    """BR-143."""
    found = verdicts([one("a")] * 10)
    assert found.index(Verdict.NOTICE) == 4
    assert found.count(Verdict.NOTICE) == 1
    assert found.index(Verdict.STUCK) == 9


def test_an_alternating_loop_is_found() -> None:
    """BR-143: A, B, A, B."""
    found = verdicts([one("a"), one("b")] * 10)
    assert found.count(Verdict.NOTICE) == 1
    assert found.index(Verdict.STUCK) == 19


def test_a_loop_of_four_is_found_and_one_of_changing_results_is_not() -> None:
    """BR-143."""
    block = [one("a"), one("b"), one("c"), one("d")]
    assert Verdict.STUCK in verdicts(block * 10)
    assert set(verdicts([one("a", n) for n in range(50)])) == {Verdict.FINE}


def test_what_differs_in_every_run_does_not_hide_a_loop() -> None:
    turns = [one("shell", {"exit_code": 1, "stdout": "x", "duration_ms": n}) for n in range(10)]
    assert verdicts(turns)[-1] is Verdict.STUCK


def test_progress_in_between_starts_the_count_anew() -> None:
    turns = [*[one("a")] * 9, one("b"), *[one("a")] * 9]
    assert Verdict.STUCK not in verdicts(turns)


def test_the_order_of_parallel_calls_does_not_matter() -> None:
    turn = [*one("a"), *one("b")]
    turns = [turn if n % 2 else turn[::-1] for n in range(10)]
    assert verdicts(turns)[-1] is Verdict.STUCK


def test_other_arguments_are_another_call() -> None:
    assert set(verdicts([one("a", n=n) for n in range(30)])) == {Verdict.FINE}


def test_waiting_for_others_is_no_loop() -> None:
    """BR-143: a peer may take its time; what is done between two looks is no loop either."""
    look = [Outcome("inbox", {}, {"messages": []}, waited=True)]
    assert set(verdicts([look] * 50)) == {Verdict.FINE}
    assert set(verdicts([look, one("shell", "", command="sleep 30")] * 25)) == {Verdict.FINE}
    assert set(verdicts([[*look, *one("shell", "", command="sleep 30")]] * 50)) == {Verdict.FINE}


def test_a_look_at_others_does_not_hide_the_loop_after_it() -> None:
    look = [Outcome("inbox", {}, "nothing", waited=True)]
    assert verdicts([look, *[one("a")] * 10])[-1] is Verdict.STUCK


def test_refused_calls_repeat_by_name_and_refusal() -> None:
    """BR-142: arguments that never reached a tool do not count."""
    turns = [[Outcome("x", None, "no such tool")] for _ in range(10)]
    assert verdicts(turns)[-1] is Verdict.STUCK
