"""The package as a whole."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import sys
from pathlib import Path

import pytest

import queuescope as qs
from queuescope import _queuescope, _report

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_workspace() -> None:
    manifest = (ROOT / "Cargo.toml").read_text()
    version = re.search(r'^version = "(.*)"$', manifest, re.MULTILINE)
    assert version is not None
    assert qs.__version__ == version[1] == importlib.metadata.version("queuescope")


def test_it_needs_no_other_package() -> None:
    assert all("extra ==" in line for line in importlib.metadata.requires("queuescope") or [])


def test_the_module_is_for_any_later_python() -> None:
    assert _queuescope.__file__ is not None
    assert Path(_queuescope.__file__).name.endswith((".abi3.so", ".pyd"))
    assert sys.version_info >= (3, 11)


def test_every_public_name_has_documentation() -> None:
    for name in qs.__all__:
        value = getattr(qs, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(value), name
        if inspect.isclass(value):
            for part, member in vars(value).items():
                if not part.startswith("_") and (callable(member) or isinstance(member, property)):
                    assert inspect.getdoc(member), f"{name}.{part}"


def test_arguments_have_documentation() -> None:
    for function in [qs.analyze, qs.simulate, qs.sweep, qs.why, qs.tap, qs.query, qs.record]:
        words = set(re.findall(r"\w+", inspect.getdoc(function) or ""))
        assert set(inspect.signature(function).parameters) <= words, function.__name__


def test_fields_with_digits_are_those_of_the_schema() -> None:
    import json

    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    found: set[str] = set()

    def look(node: object) -> None:
        if isinstance(node, dict):
            for name, field in (node.get("properties") or {}).items():
                if "#/$defs/Decimal" in json.dumps({key: value for key, value in field.items() if key != "properties"}):
                    found.add(name)
            for value in node.values():
                look(value)
        elif isinstance(node, list):
            for value in node:
                look(value)

    look(schema)
    assert found == _report._DIGITS


def test_stray_arguments_are_errors() -> None:
    with pytest.raises(TypeError, match="rates"):
        qs.analyze("demo.pcap.xz", rates="20mbps")  # type: ignore[call-arg]
