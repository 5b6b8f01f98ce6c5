"""Errors that a newcomer understands."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import queuescope as qs


@pytest.mark.parametrize(
    ("arguments", "error", "parts"),
    [
        ({}, qs.InvalidValueError, ["rate= is missing", "rate='20mbps'"]),
        ({"rate": "10"}, qs.InvalidValueError, ["rate=", "'10'", "10gbps"]),
        ({"rate": "fast"}, qs.InvalidValueError, ["rate=", "'fast'"]),
        ({"rate": 0}, qs.InvalidValueError, ["rate= is 0", "bits per second"]),
        ({"rate": -5e6}, qs.InvalidValueError, ["rate= is -5000000.0"]),
        ({"rate": True}, qs.InvalidValueError, ["rate= is", "bits per second"]),
        ({"rate": ["1gbps"]}, qs.InvalidValueError, ["rate= is of type list"]),
        ({"rate": "1gbps", "tau": "5"}, qs.InvalidValueError, ["tau=", "'5'"]),
        ({"rate": "1gbps", "tau": -1}, qs.InvalidValueError, ["tau= is -1", "seconds"]),
        ({"rate": "1gbps", "tau": timedelta(seconds=-1)}, qs.InvalidValueError, ["tau=", "not negative"]),
        ({"rate": "1gbps", "alpha": 2}, qs.InvalidValueError, ["alpha= is 2", "'1%'"]),
        ({"rate": "1gbps", "by": "nonsense"}, qs.InvalidValueError, ["by=", "nonsense"]),
        ({"rate": "1gbps", "by": []}, qs.InvalidValueError, ["by=", "at least one"]),
        ({"rate": "1gbps", "limit": "lots"}, qs.InvalidValueError, ["limit=", "lots"]),
        ({"rate": "1gbps", "mtu": 10}, qs.InvalidValueError, ["mtu= is 10", "68"]),
        ({"rate": "1gbps", "expiry": "never"}, qs.InvalidValueError, ["expiry=", "clean-plain"]),
        ({"rate": "1gbps", "memory": "1MiB", "sketch_columns": 100}, qs.InvalidValueError, ["sketch_columns=", "memory="]),
        ({"rate": "1gbps", "snapshots": 1}, qs.InvalidValueError, ["snapshots"]),
        ({"rate": "1gbps", "columns": {"size": "bytes"}}, qs.InvalidValueError, ["columns=", "departures="]),
        ({"rate": "1gbps", "aqm": "fq-codl"}, qs.ExpressionError, ["fq-codl", "did you mean `fq-codel`", "─"]),
        ({"rate": "1gbps", "aqm": "codel,tagret=10ms"}, qs.ExpressionError, ["tagret", "target"]),
        ({"rate": "1gbps", "input": "dst_prt == 443"}, qs.ExpressionError, ["dst_prt", "did you mean `dst_port`"]),
        ({"rate": "1gbps", "show": "length > 5"}, qs.InvalidValueError, ["show", "length"]),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], parts: list[str]) -> None:
    with pytest.raises(error) as caught:
        qs.analyze("demo.pcap.xz", **arguments)
    message = str(caught.value)
    assert isinstance(caught.value, (qs.QueuescopeError, ValueError))
    assert all(part in message for part in parts), message
    assert "--" not in message.replace("───", ""), message


def test_a_missing_file() -> None:
    with pytest.raises(qs.MissingFileError, match="none.pcap.*check the path") as caught:
        qs.analyze("none.pcap", rate="1gbps")
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(qs.MissingFileError, match=r"none\.csv"):
        qs.analyze(departures="none.csv")
    with pytest.raises(qs.MissingFileError, match=r"none\.toml"):
        qs.simulate("none.toml")


def test_other_inputs(folder: Path) -> None:
    with pytest.raises(qs.InputError, match="is a directory"):
        qs.analyze(folder, rate="1gbps")
    (folder / "text.pcap").write_text("hello, this is not a capture")
    with pytest.raises(qs.InputError, match="not a pcap or pcapng capture"):
        qs.analyze("text.pcap", rate="1gbps")


def test_damage_is_not_an_error(folder: Path) -> None:
    import lzma

    whole = lzma.decompress((folder / "demo.pcap.xz").read_bytes())
    (folder / "cut.pcap").write_bytes(whole[: len(whole) // 2 + 7])
    report = qs.analyze("cut.pcap", rate="20mbps")
    assert report.damage is not None and "damaged" in report.damage
    assert 0 < report.totals["packets"] < qs.analyze("demo.pcap.xz", rate="20mbps").totals["packets"]


def test_neither_a_capture_nor_departures() -> None:
    with pytest.raises(qs.InvalidValueError, match="give a capture"):
        qs.analyze(rate="1gbps")
    with pytest.raises(qs.InvalidValueError, match="rate= applies to captures only"):
        qs.analyze(departures="table.csv", rate="1gbps")
    with pytest.raises(qs.InvalidValueError, match="aqm= applies to captures only"):
        qs.analyze(departures="table.csv", aqm="pie")


def test_a_wrong_scenario() -> None:
    with pytest.raises(qs.ExpressionError) as caught:
        qs.simulate({"link": {"rte": "10mbps"}, "flows": [{}]})
    assert "rte" in str(caught.value) and "rate" in str(caught.value)
    with pytest.raises(qs.ExpressionError, match="duration"):
        qs.simulate({"flows": [{}]}, duration="soon")
    with pytest.raises(qs.InvalidValueError, match="sweep"):
        qs.simulate({"flows": [{}], "sweep": {"seeds": 2}})
    assert qs.simulate({"flows": [{}], "sweep": {"seeds": 2}}, sweep={}, duration="1s").totals["packets"] > 0
    with pytest.raises(qs.InvalidValueError, match="nothing is swept"):
        qs.sweep({"flows": [{}]})
    with pytest.raises(qs.InvalidValueError, match="link.rate is of type object"):
        qs.simulate({"link": {"rate": object()}})


def test_a_part_that_a_report_lacks() -> None:
    report = qs.analyze("demo.pcap.xz", rate="20mbps", depth=False)
    with pytest.raises(qs.InvalidValueError, match="depth=False"):
        _ = report.depth
    with pytest.raises(qs.InvalidValueError, match="no column 'nothing'.*peak_delay_ns"):
        _ = report.bursts["nothing"]


def test_a_panic_is_an_exception() -> None:
    from queuescope import _queuescope

    with pytest.raises(qs.EngineError, match=r"a defect.*a test.*task\.rs"):
        _queuescope._panic()
    # The engine works afterwards.
    assert qs.analyze("demo.pcap.xz", rate="20mbps").bursts.num_rows > 0
