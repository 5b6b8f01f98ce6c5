"""The examples of the documentation, each in a folder of its own with ``demo.pcap.xz``."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import queuescope

MODULES = ["queuescope"] + [f"queuescope.{module.name}" for module in pkgutil.iter_modules(queuescope.__path__)]
FINDER = doctest.DocTestFinder(exclude_empty=True)
EXAMPLES = [test for name in MODULES for test in FINDER.find(importlib.import_module(name), name) if test.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_example(example: doctest.DocTest) -> None:
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    failed, _ = runner.run(example, out=printed.append)
    assert failed == 0, "".join(printed)


def test_there_are_examples() -> None:
    named = {test.name.rsplit(".", 1)[-1] for test in EXAMPLES}
    assert {"analyze", "simulate", "sweep", "why", "query", "record", "Table", "Queue", "Discipline", "ConQuest", "fit"} <= named
