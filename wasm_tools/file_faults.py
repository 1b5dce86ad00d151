"""What is wrong with a file that somebody wrote, in words for that person."""

from __future__ import annotations

from itertools import chain

from pydantic import BaseModel, ValidationError

from tool_registry.near_names import closest


def first_fault(error: ValidationError, model: type[BaseModel]) -> str:
    """Where the first fault is, and what it is.

    Args:
        error: of reading the file.
        model: of the file, or of one entry of it; its keys are suggested in place of an unknown one.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg'].removeprefix('Value error, ')}"
    near = closest(str(first["loc"][-1]), _keys(model))
    return f"{where}: unknown key" + (f"; did you mean {near!r}?" if near else "")


def _keys(model: type[BaseModel]) -> set[str]:
    """All keys that such a file can have, at any depth."""
    schema = model.model_json_schema()
    objects = [schema, *schema.get("$defs", {}).values()]
    return set(chain.from_iterable(one.get("properties", ()) for one in objects))
