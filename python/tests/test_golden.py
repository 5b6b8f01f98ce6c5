"""The package and the command give the same answers, field by field."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import queuescope as qs

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "crates" / "cli" / "tests" / "data" / "departures.csv"

CAPTURES: list[tuple[list[str], dict[str, Any]]] = [
    (["--rate", "20mbps"], {"rate": "20mbps"}),
    (["--rate", "20mbps"], {"rate": 20_000_000}),
    (["--rate", "6mbps", "--aqm", "pie", "--most-bursts", "1"], {"rate": "6mbps", "aqm": "pie", "most_bursts": 1}),
    (["--rate", "6mbps", "--aqm", "fq-codel", "--limit", "100kB"], {"rate": "6mbps", "aqm": "fq-codel", "limit": 100_000}),
    (
        ["--rate", "10mbps", "--by", "src,dst/24", "--tau", "5ms", "--alpha", "5%"],
        {"rate": "10mbps", "by": ["src", "dst/24"], "tau": 0.005, "alpha": 0.05},
    ),
    (
        ["--rate", "20mbps", "--input", "tcp", "--show", "dst_port == 443", "--victims", "length > 100B"],
        {"rate": "20mbps", "input": "tcp", "show": "dst_port == 443", "victims": "length > 100B"},
    ),
    (
        ["--rate", "100mbps", "--speedup", "10", "--overhead", "ethernet", "--split-gso", "--mtu", "1400", "--inner"],
        {"rate": "100mbps", "speedup": 10, "overhead": "ethernet", "split_gso": True, "mtu": 1400, "inner": True},
    ),
    (
        ["--rate", "20mbps", "--snapshots", "4", "--sketch-rows", "3", "--memory", "16KiB", "--estimator", "inner,outer"],
        {"rate": "20mbps", "snapshots": 4, "sketch_rows": 3, "memory": 16_384, "estimator": ["inner", "outer"]},
    ),
    (
        ["--rate", "20mbps", "--sketch-columns", "128", "--window", "2ms", "--expiry", "clean", "--ramped", "4x"],
        {"rate": "20mbps", "sketch_columns": 128, "window": "2ms", "expiry": "clean", "ramped": 4},
    ),
]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def run(command: Path, *arguments: str) -> str:
    return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout


def same(ours: str, theirs: str) -> None:
    """Compares the lines field by field, so that a difference is small when it is shown."""
    ours_, theirs_ = lines(ours), lines(theirs)
    assert [line["kind"] for line in ours_] == [line["kind"] for line in theirs_]
    for one, other in zip(ours_, theirs_, strict=True):
        assert one.keys() == other.keys()
        for field, value in one.items():
            assert value == other[field], (one["kind"], field)


@pytest.mark.parametrize(("options", "arguments"), CAPTURES, ids=lambda case: "_".join(case) if isinstance(case, list) else "")
def test_analyze_equals_the_command(command: Path, options: list[str], arguments: dict[str, Any]) -> None:
    same(qs.analyze("demo.pcap.xz", **arguments).to_json(), run(command, "analyze", "demo.pcap.xz", *options, "--json"))


def test_text_and_page_equal_those_of_the_command(command: Path, folder: Path) -> None:
    report = qs.analyze("demo.pcap.xz", rate="20mbps")
    assert report.to_text() == run(command, "analyze", "demo.pcap.xz", "--rate", "20mbps", "--html", "page.html")
    assert report.to_html("ours.html") == (folder / "page.html").read_text()
    assert (folder / "ours.html").read_text() == report.to_html()


def test_a_table_of_departures_equals_the_command(command: Path) -> None:
    same(
        qs.analyze(departures=TABLE, tau="10us").to_json(),
        run(command, "analyze", str(TABLE), "--departures", "--tau", "10us", "--json"),
    )


def test_parquet_equals_the_command(command: Path, folder: Path) -> None:
    import pyarrow.parquet as parquet

    report = qs.analyze("demo.pcap.xz", rate="20mbps", parquet="ours.parquet", packets=True)
    run(command, "analyze", "demo.pcap.xz", "--rate", "20mbps", "--parquet", "theirs.parquet", "--json")
    theirs = parquet.read_table(folder / "theirs.parquet")
    assert parquet.read_table(folder / "ours.parquet").equals(theirs)
    assert report.packets is not None
    ours = report.packets.to_pyarrow()
    assert ours.column_names == theirs.column_names
    for name in theirs.column_names:
        assert ours[name].to_pylist() == theirs[name].to_pylist(), name


@pytest.mark.parametrize("question", [["packet", "100"], ["at", "0.5s..0.6s"], ["at", "0.2s"], ["victims", "tcp"]], ids="=".join)
def test_why_equals_the_command(command: Path, question: list[str]) -> None:
    name, value = question
    arguments: dict[str, Any] = {name: int(value) if name == "packet" else value}
    same(
        qs.why("demo.pcap.xz", rate="6mbps", **arguments).to_json(),
        run(command, "why", "demo.pcap.xz", "--rate", "6mbps", f"--{name}", value, "--json"),
    )


def test_tap_equals_the_command(command: Path, folder: Path) -> None:
    """Behind the router, each packet is 3 ms later."""
    import lzma
    import struct

    before = lzma.decompress((folder / "demo.pcap.xz").read_bytes())
    (folder / "before.pcap").write_bytes(before)
    behind, at = bytearray(before[:24]), 24
    nanos = struct.unpack("<I", before[:4])[0] == 0xA1B23C4D
    while at < len(before):
        seconds, part, captured, length = struct.unpack_from("<IIII", before, at)
        part += 3_000_000 if nanos else 3_000
        seconds, part = seconds + part // (10**9 if nanos else 10**6), part % (10**9 if nanos else 10**6)
        behind += struct.pack("<IIII", seconds, part, captured, length) + before[at + 16 : at + 16 + captured]
        at += 16 + captured
    (folder / "behind.pcap").write_bytes(behind)
    report = qs.tap("before.pcap", "behind.pcap", rate="100mbps", shared_clock=True)
    same(report.to_json(), run(command, "tap", "before.pcap", "--egress", "behind.pcap", "--rate", "100mbps", "--shared-clock", "--json"))
    assert report.to_dict()["tap"] is not None


@pytest.mark.parametrize("name", ["bufferbloat", "fq-codel", "l4s", "incast", "parking-lot"])
def test_simulate_equals_the_command(command: Path, name: str) -> None:
    path = ROOT / "scenarios" / f"{name}.toml"
    ours = qs.simulate(path, duration="3s", warmup="1s").to_json()
    same(ours, run(command, "sim", str(path), "--set", "duration=3s", "--set", "warmup=1s", "--json"))


def test_sweep_equals_the_command(command: Path) -> None:
    path = ROOT / "scenarios" / "bufferbloat.toml"
    ours = qs.sweep(path, {"link.limit": ["64kB", "256kB"]}, seeds=2, duration="2s", warmup="500ms")
    options = ["--set", "duration=2s", "--set", "warmup=500ms", "--sweep", "link.limit=64kB,256kB", "--seeds", "2"]
    theirs = lines(run(command, "sim", str(path), *options, "--json"))
    assert lines(ours.to_json()) == theirs[-1:]
    figures = [cell["figures"] for cell in theirs[:-1]]
    assert ours.cells["delay_p95_ns"].to_list() == [figure["delay_p95_ns"] for figure in figures]
    assert ours.rows["cells"].to_list() == [2, 2]
