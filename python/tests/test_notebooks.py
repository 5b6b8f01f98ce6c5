"""The notebooks run from their first cell to their last, and their types are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import needs

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def code(notebook: Path) -> list[str]:
    """The code of each cell that has any."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@needs("matplotlib")
@needs("pyarrow")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code(notebook)):
        exec(compile(cell, f"{notebook.stem}, cell {number}", "exec"), names)
    import matplotlib.pyplot as plt

    plt.close("all")


def test_there_are_six() -> None:
    assert len(NOTEBOOKS) == 6


@needs("mypy")
@needs("matplotlib")
def test_their_types_are_right(tmp_path: Path) -> None:
    for notebook in NOTEBOOKS:
        # A name that a module can have.
        script = tmp_path / f"notebook_{notebook.stem.replace('-', '_')}.py"
        script.write_text("\n\n".join(code(notebook)), encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", *map(str, sorted(tmp_path.glob("notebook_*.py")))],
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
