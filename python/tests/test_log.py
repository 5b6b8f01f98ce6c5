"""Logs, queries, sketches and switches."""

from __future__ import annotations

import array
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import needs

import queuescope as qs


def run(command: Path, *arguments: str) -> list[dict[str, Any]]:
    printed = subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--group", "dst_ip", "--select", "sum(length),count", "--top", "5"], {"group": "dst_ip", "select": ["sum(length)", "count"], "top": 5}),
        (["--select", "count,mean(length)"], {"select": "count,mean(length)"}),
        (["--select", "src_ip,dst_port,length", "--limit", "20"], {"select": "src_ip,dst_port,length", "limit": 20}),
        (["--select", "count", "--from", "100ms", "--to", "300ms"], {"select": "count", "start": 0.1, "end": "300ms"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("source", ["demo.pcap.xz", "traffic"])
def test_query_equals_the_command(command: Path, options: list[str], arguments: dict[str, Any], source: str) -> None:
    if source == "traffic":
        qs.record("demo.pcap.xz", "traffic")
    rows = [line["values"] for line in run(command, "query", source, "tcp", *options, "--json") if line["kind"] == "row"]
    answer = qs.query(source, "tcp", **arguments)
    assert rows and set(answer.column_names) == set(rows[0])
    for ours, theirs in zip(answer.rows(), rows, strict=True):
        # JSON has large integers as strings of digits.
        assert {name: str(value) if isinstance(theirs[name], str) else value for name, value in ours.items()} == theirs


def test_wrong_queries() -> None:
    with pytest.raises(qs.ExpressionError, match="dst_prt"):
        qs.query("demo.pcap.xz", "dst_prt == 443")
    with pytest.raises(qs.ExpressionError, match="lenght"):
        qs.query("demo.pcap.xz", select="lenght")
    with pytest.raises(qs.MissingFileError):
        qs.query("none.pcap")
    with pytest.raises(qs.MissingFileError):
        qs.Log.open("none")
    with pytest.raises(qs.InputError):
        qs.Log.open("demo.pcap.xz")


def test_triggers_and_alerts() -> None:
    log = qs.record(
        "demo.pcap.xz",
        "traffic",
        filters=["segments=tcp"],
        aggregates=["bytes=sum(length)@segments"],
        triggers=["busy=bytes > 100kB@10ms/100ms"],
    )
    alerts = list(log.alerts())
    assert alerts and all(alert["trigger"] == "busy" for alert in alerts)
    assert list(log.alerts(wait=True)) == alerts and list(log.alerts(from_now=True)) == []
    assert "length" in log.attributes()["name"].to_list()
    with pytest.raises(qs.ExpressionError, match="lenght"):
        qs.record("demo.pcap.xz", "other", aggregates=["bytes=sum(lenght)"])


@needs("pyarrow")
def test_appending() -> None:
    import pyarrow

    found = qs.query("demo.pcap.xz", "tcp", select="ts,src_ip,dst_ip,src_port,dst_port,length", limit=1000)
    with qs.Log.create("copy", schema="packet") as log:
        assert log.append(found) == 1000
        with pytest.raises(qs.InvalidValueError, match="no attribute 'nothing'"):
            log.append(pyarrow.table({"nothing": [1]}))
        with pytest.raises(qs.InvalidValueError, match="length"):
            log.append(pyarrow.table({"length": ["a text"]}))
    log = qs.Log.open("copy")
    again = log.query(select="ts,src_ip,dst_ip,src_port,dst_port,length")
    assert again.to_dict() == found.to_dict()
    with pytest.raises(qs.InvalidValueError, match="open for reading"):
        log.append(found)
    log.close()


@needs("numpy")
def test_conquest_over_arrays() -> None:
    import numpy

    count = 20_000
    random = numpy.random.default_rng(7)
    flow = random.integers(0, 50, count).astype(numpy.uint64)
    size = random.integers(64, 1500, count).astype(numpy.uint32)
    dequeued = numpy.cumsum(random.integers(500, 1500, count)).astype(numpy.int64)
    enqueued = numpy.maximum(dequeued - 200_000, 0)
    sketch = qs.ConQuest(longest="1ms", memory="256KiB")
    estimates = numpy.asarray(sketch.observe(flow, size, enqueued, dequeued, estimator="outer"))
    # The windows of the outer estimator cover the interval, and collisions only add: it is never too low.
    exact = numpy.zeros(count, numpy.uint64)
    begin = numpy.searchsorted(dequeued, enqueued, side="right")
    for packet in range(count):
        of_flow = flow[begin[packet] : packet] == flow[packet]
        exact[packet] = size[begin[packet] : packet][of_flow].sum()
    assert (estimates >= exact).all() and estimates.sum() > 0
    # One by one, and of any type of buffer, it is the same.
    other = qs.ConQuest(longest="1ms", memory="256KiB")
    for packet in range(200):
        one = other.estimate([int(flow[packet])], [int(enqueued[packet])], [int(dequeued[packet])], estimator="outer")
        other.record(array.array("Q", [int(flow[packet])]), array.array("I", [int(size[packet])]), [int(dequeued[packet])])
        assert one[0] == estimates[packet]
    assert "ConQuest" in repr(sketch) and sketch.memory_bytes <= 256 << 10 and 0 < sketch.error_bound[0] < 1


def test_wrong_arrays() -> None:
    sketch = qs.ConQuest(window="1ms", columns=64)
    with pytest.raises(qs.InvalidValueError, match="flow= has 2 values, and size= has 1"):
        sketch.record([1, 2], [3], [4, 5])
    with pytest.raises(qs.InvalidValueError, match="size= has a number below zero"):
        sketch.record([1], array.array("i", [-3]), [4])
    with pytest.raises(qs.InvalidValueError, match="size= is of type"):
        sketch.record([1], array.array("d", [1.5]), [4])
    with pytest.raises(qs.InvalidValueError, match="longest="):
        qs.ConQuest()
    with pytest.raises(qs.InvalidValueError, match="estimator="):
        sketch.estimate([1], [0], [1], estimator="best")  # type: ignore[arg-type]
    with pytest.raises(qs.InvalidValueError, match="1 to 8 rows"):
        qs.CountMin(rows=0)


def test_time_windows() -> None:
    history = qs.TimeWindows(cell="1ms", flows=8)
    history.record(flow=[1] * 100 + [2] * 50, size=[1000] * 150, at=[n * 1_000_000 for n in range(150)])
    passed = history.passed(100_000_000, 150_000_000)
    assert passed.flow[0] == 2 and passed.total == pytest.approx(50_000, rel=0.2)
    assert history.memory_bytes > 0 and history.since_ns == 0


def test_p4_fit(command: Path) -> None:
    for algorithm in ["pie", "egress-pi", "codel-dp"]:
        for target in qs.p4.targets():
            [theirs] = run(command, "p4", "fit", algorithm, "--target", target, "--json")
            ours = qs.p4.fit(algorithm, target).to_dict()
            for field in ["algorithm", "target", "target_stages", "grade", "aspects", "exhausted", "refused"]:
                assert ours[field] == theirs.get(field), (algorithm, target, field)
            assert len(ours["stages"] or []) == len(theirs["stages"] or [])
    with pytest.raises(qs.InvalidValueError, match="must be one of"):
        qs.p4.fit("nothing")
    with pytest.raises(qs.InvalidValueError, match="must be one of"):
        qs.p4.fit("pie", "nothing")
