"""Property names that providers refuse, and the way back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

from orchestrator.domain.shaping.family import PROPERTY_NAME
from orchestrator.domain.shaping.subschemas import Schema, rewritten, subschemas


def rename_properties(
    schema: Schema, changes: list[str], legal: re.Pattern[str] = PROPERTY_NAME
) -> tuple[Schema, dict[str, str]]:
    """Give every property whose name does not match `legal` one that does, unique in the whole schema.

    Returns:
        the copy, and the new names by the original ones. One original has one new name wherever it stands, so
        arguments are told back by `rename_keys` without the schema.
    """
    names = {name for part in subschemas(schema) for name in _property_names(part)}
    renames: dict[str, str] = {}
    for name in sorted(name for name in names if not legal.fullmatch(name)):
        renames[name] = _legal_name(name, names | set(renames.values()), legal)
        changes.append(f"property {name!r} is shown as {renames[name]!r}")
    if not renames:
        return schema, {}
    return rewritten(schema, lambda part: _renamed(part, renames)), renames


def rename_keys(value: Any, names: Mapping[str, str]) -> Any:
    """Rename the keys of all objects in a JSON value."""
    if isinstance(value, list):
        return [rename_keys(item, names) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            names.get(key, key): rename_keys(item, names)
            for key, item in cast("dict[str, Any]", value).items()
        }
    return value


def _property_names(part: Schema) -> list[str]:
    properties = part.get("properties")
    named = list(cast("Schema", properties)) if isinstance(properties, dict) else []
    return [*named, *_strings(part.get("required"))]


def _strings(value: Any) -> list[str]:
    return (
        [item for item in cast("list[Any]", value) if isinstance(item, str)]
        if isinstance(value, list)
        else []
    )


def _legal_name(name: str, taken: set[str], legal: re.Pattern[str]) -> str:
    """A readable name where one is left and free; else one that ends in a hash of the original."""
    readable = re.sub(r"[^a-zA-Z0-9_.-]", "_", name)
    if not legal.fullmatch(readable[:64] or "_"):
        readable = re.sub(r"^(?=[0-9])|[^a-zA-Z0-9_]", "_", readable)
    if legal.fullmatch(readable) and readable not in taken and re.search("[a-zA-Z0-9]", readable):
        return readable
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = readable[:50] if re.search("[a-zA-Z0-9]", readable) else "property"
    return f"{stem}_{digest}"


def _renamed(part: Schema, renames: Mapping[str, str]) -> Schema:
    copy = dict(part)
    if isinstance(part.get("properties"), dict):
        copy["properties"] = {
            renames.get(name, name): _explained(child, name) if name in renames else child
            for name, child in cast("Schema", part["properties"]).items()
        }
    if isinstance(part.get("required"), list):
        copy["required"] = [renames.get(name, name) for name in part["required"]]
    for key in ("dependentRequired", "dependentSchemas", "dependencies"):
        if isinstance(part.get(key), dict):
            copy[key] = {
                renames.get(name, name): [renames.get(item, item) for item in cast("list[Any]", needs)]
                if isinstance(needs, list)
                else needs
                for name, needs in cast("Schema", part[key]).items()
            }
    return copy


def _explained(child: Any, name: str) -> Any:
    """Tell the model the original name: it may mean more than the legal one."""
    if not isinstance(child, dict):
        return child
    schema = cast("Schema", child)
    said = schema.get("description")
    return {**schema, "description": f"{said} (named {name})" if said else f"Named {name}."}
