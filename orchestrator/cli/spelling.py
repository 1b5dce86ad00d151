"""How the help of every command names what goes with an option or stands in its place."""

from __future__ import annotations

from enum import EnumType
from typing import Literal, cast, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


def spell(command: TyperGroup | TyperCommand) -> None:
    """Give the command and those below it upper-case names for values, and none for flags.

    What a command names itself stays; so do choices, which are shown as such.
    """
    shown = [*command.params, command.get_help_option(typer.Context(command))]
    for one in shown:
        if one is None or one.metavar is not None:
            continue
        if isinstance(one, TyperArgument):
            one.metavar = (one.name or "").upper()
        elif isinstance(one, TyperOption) and one.is_flag:
            one.metavar = ""
        elif isinstance(one, TyperOption) and not _is_choice(cast("object", one.type_descriptor.annotation)):
            one.metavar = one.opts[0].lstrip("-").rpartition("-")[2].upper()
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            if isinstance(below, TyperGroup | TyperCommand):
                spell(below)


def _is_choice(annotation: object) -> bool:
    if get_origin(annotation) is list:
        annotation = get_args(annotation)[0]
    return isinstance(annotation, EnumType) or get_origin(annotation) is Literal
