"""Scenarios as arguments: paths, TOML, dictionaries; and the values that replace theirs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from ._errors import InvalidValueError

#: A scenario: the path of a TOML file, the text of one, or a dictionary with the same keys.
ScenarioArg: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


def described(
    scenario: ScenarioArg, overrides: Mapping[str, Any], over: Mapping[str, Sequence[Any]] | None = None
) -> dict[str, Any]:
    """The scenario with its overrides, as the engine takes it."""
    lists = [f"{path}={','.join(_bare(value) for value in values)}" for path, values in (over or {}).items()]
    common = {"overrides": [f"{path}={value}" for path, value in _flat(overrides)], "sweep": lists}
    if isinstance(scenario, Mapping):
        return {"text": toml(scenario), "name": str(scenario.get("name", "scenario")), "folder": os.getcwd(), **common}
    # A scenario has lines or a key, and the name of a file has neither.
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return {"text": scenario, "name": "scenario", "folder": os.getcwd(), **common}
    return {"path": os.fspath(Path(scenario)), **common}


def toml(fields: Mapping[str, Any]) -> str:
    """A dictionary as TOML."""
    return "".join(f"{_key(name)} = {_value(value, name)}\n" for name, value in fields.items() if value is not None)


def _key(name: object) -> str:
    text = str(name)
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)


def _value(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes are those of TOML, but for the characters that JSON leaves as they are.
        return json.dumps(value).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, timedelta):
        return f'"{value // timedelta(microseconds=1)}us"'
    if isinstance(value, Mapping):
        parts = (f"{_key(name)} = {_value(part, f'{path}.{name}')}" for name, part in value.items() if part is not None)
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(part, path) for part in value) + "]"
    # Numbers of numpy.
    if hasattr(value, "item"):
        return _value(value.item(), path)
    raise InvalidValueError(f"{path} is of type {type(value).__name__}: a scenario has texts, numbers, True, False, lists and dictionaries")


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else _value(value, "a value of a sweep")


def _flat(overrides: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in overrides.items():
        path = above + str(name).replace("__", ".")
        if isinstance(value, Mapping):
            if value:
                yield from _flat(value, f"{path}.")
            else:
                yield path, "{}"
        else:
            yield path, _bare(value)
