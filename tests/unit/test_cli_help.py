"""What `--help` shows of every command (PD-14)."""

from __future__ import annotations

from collections.abc import Iterator

from typer.core import TyperCommand, TyperGroup

from orchestrator.cli.main import commands


def every(group: TyperGroup, path: str = "portside") -> Iterator[tuple[str, TyperCommand]]:
    """Each command with what is typed for it."""
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            yield from every(one, f"{path} {name}")
        elif isinstance(one, TyperCommand):
            yield f"{path} {name}", one


def test_every_command_says_what_it_does_and_each_option_what_it_is_for() -> None:
    for path, command in every(commands()):
        assert command.help, path
        assert command.help[0].isupper(), path
        assert command.help.strip().endswith((".", "?")), path
        for one in command.params:
            if one.opts[0].startswith("-"):
                text = str(getattr(one, "help", "")).strip()
                assert text.endswith("."), f"{path} {one.opts[0]}"


def test_values_have_upper_case_names_and_flags_have_none() -> None:
    choices: set[str] = set()
    for path, command in every(commands()):
        for one in command.params:
            where = f"{path} {one.opts[0]}"
            if one.metavar is None:
                choices.add(where)
            elif getattr(one, "is_flag", False):
                assert one.metavar == "", where
            else:
                assert one.metavar.isupper(), where
    assert choices == {
        "portside agents add --kind",
        "portside jobs list --state",
        "portside network tasks --state",
        "portside run --coerce",
        "portside run --mode",
    }


def test_every_command_writes_json_for_programs() -> None:
    without = [
        path for path, one in every(commands()) if "--json" not in {o for p in one.params for o in p.opts}
    ]
    assert without == []
