"""What all tests share: the demo capture in a folder of its own, and lines that say what was skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "data" / "demo.pcap.xz"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with ``demo.pcap.xz`` in it, as the examples of the documentation expect."""
    shutil.copy(DEMO, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def command() -> Path:
    """The command, to compare with: ``$QUEUESCOPE_BIN``, or the one that ``cargo build`` or ``cargo test`` made."""
    named = os.environ.get("QUEUESCOPE_BIN")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for path in [Path(named)] if named else [target / "debug" / "queuescope", target / "release" / "queuescope"]:
        if path.is_file():
            return path.resolve()
    pytest.skip("the command queuescope was not built")


def needs(module: str) -> pytest.MarkDecorator:
    """Skips a test without a library."""
    try:
        __import__(module)
        absent = False
    except ImportError:
        absent = True
    return pytest.mark.skipif(absent, reason=f"{module} is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints a line for each skipped test, as the tests in Rust do."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else "skipped"
        terminalreporter.write_line(f"skipped: {report.nodeid.split('::')[-1]}: {reason}")


@pytest.fixture(autouse=True)
def _no_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_COLOR", "1")
    yield
