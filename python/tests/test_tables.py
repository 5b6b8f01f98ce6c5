"""Arrays in and out, without a copy."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from conftest import needs

import queuescope as qs


@pytest.fixture(scope="module")
def report() -> qs.Report:
    from conftest import DEMO

    return qs.analyze(DEMO, rate="20mbps", packets=True)


def addresses(table: Any) -> list[int]:
    """The addresses of all buffers of a table of pyarrow."""
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    return [buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer is not None]


def test_every_part_is_a_table(report: qs.Report) -> None:
    fields = report.to_dict()
    assert report.bursts["number"].to_list() == [burst["number"] for burst in fields["bursts"]]
    assert report.bursts["peak_delay_ns"].to_list() == [burst["peak_delay_ns"] for burst in fields["bursts"]]
    overall = [row for row in report.culprits.rows() if row["burst"] is None]
    listed = [(level["granularity"], flow) for level in fields["culprits"] for flow in level["flows"]]
    assert [(row["granularity"], row["flow"], row["bytes"], row["share"]) for row in overall] == [
        (granularity, flow["flow"], flow["bytes"], flow["share"]) for granularity, flow in listed
    ]
    assert list(map(list, zip(*report.delays.to_dict().values(), strict=True))) == fields["totals"]["delay_percentiles"]
    assert report.depth["mean_bytes"].to_list() == fields["series"]["mean_bytes"]
    assert report.notes["reason"].to_list() == [note["reason"] for note in fields["skipped"]]
    assert report.sketch.num_rows == len(fields["sketch"])
    assert report.groups.column_names[:2] == ["burst", "description"]


def test_the_depth_of_flows_adds_up(report: qs.Report) -> None:
    sums: dict[int, float] = {}
    for row in report.depth_by_flow.rows():
        sums[row["time_ns"]] = sums.get(row["time_ns"], 0.0) + row["mean_bytes"]
    assert list(sums) == report.depth["time_ns"].to_list()
    assert list(sums.values()) == pytest.approx(report.depth["mean_bytes"].to_list())


def test_reports_without_bursts_have_the_same_columns(report: qs.Report) -> None:
    idle = qs.analyze("demo.pcap.xz", rate="100gbps")
    assert idle.bursts.num_rows == 0
    for part in ["bursts", "culprits", "groups", "delays", "depth", "depth_by_flow", "sketch", "notes"]:
        assert getattr(idle, part).schema == getattr(report, part).schema, part


def test_a_table_is_a_mapping_of_columns(report: qs.Report) -> None:
    table = report.bursts
    assert len(table) == table.num_rows == table.shape[0] and list(table) == table.column_names
    assert "number" in table and "nothing" not in table
    column = table["number"]
    assert column[0] == 1 and column[-1] == len(column) and column[:2] == [1, 2] and list(column) == column.to_list()
    with pytest.raises(IndexError):
        column[len(column)]
    assert table.head(2).to_dict()["number"] == [1, 2]
    assert "<Table:" in repr(table) and "<table>" in table._repr_html_() and "number" in repr(column)


@needs("numpy")
def test_numpy_takes_columns_without_a_copy(report: qs.Report) -> None:
    import numpy

    assert report.packets is not None
    column = report.packets["size"]
    array = numpy.asarray(column)
    assert array.dtype == numpy.uint32 and array.tolist() == column.to_list() and not array.flags.writeable
    assert array.ctypes.data == column.__array_interface__["data"][0]
    # The array keeps the column alive.
    del column
    gc.collect()
    assert array.sum() > 0
    # Missing values make objects.
    assert numpy.asarray(report.culprits["burst"], dtype=object)[0] is None


@needs("pyarrow")
def test_arrays_go_in_and_out_without_a_copy() -> None:
    import pyarrow

    rows = 1_000_000
    departures = pyarrow.table(
        {
            "flow": pyarrow.array(["a", "b"] * (rows // 2)),
            "size": pyarrow.array([1500] * rows, pyarrow.uint32()),
            "enqueued": pyarrow.array(range(0, rows * 100, 100), pyarrow.uint64()),
            "dequeued": pyarrow.array(range(50, rows * 100 + 50, 100), pyarrow.uint64()),
        }
    )
    ours = qs.table(departures)
    again = pyarrow.table(ours)
    assert addresses(again) == addresses(departures)
    assert ours["size"].__array_interface__["data"][0] in addresses(departures)
    assert again.equals(departures)


@needs("pyarrow")
def test_batches_are_freed() -> None:
    import pyarrow

    before = pyarrow.total_allocated_bytes()
    data = pyarrow.table({"flow": ["a"] * 1000, "size": [100] * 1000, "enqueued": range(1000), "dequeued": range(1, 1001)})
    table = qs.table(data)
    watched = weakref.ref(data)
    del data
    gc.collect()
    assert watched() is None and table.num_rows == 1000
    del table
    gc.collect()
    assert pyarrow.total_allocated_bytes() <= before


@needs("pyarrow")
@needs("polars")
@needs("pandas")
def test_libraries_take_tables(report: qs.Report) -> None:
    for part in ["bursts", "culprits", "depth", "packets"]:
        table = getattr(report, part)
        assert table.to_pyarrow().to_pydict() == table.to_dict() or part == "packets"
        assert table.to_polars().shape == table.shape == table.to_pandas().shape
        assert table.to_polars().columns == table.column_names


def departures() -> dict[str, list[Any]]:
    """Ten packets of 1500 bytes arrive at once, and each takes 0.12 ms; then one of another flow."""
    times = [n * 120_000 for n in range(11)]
    return {"flow": ["bulk"] * 10 + ["call"], "size": [1500] * 10 + [200], "enqueued": [0] * 11, "dequeued": times}


@needs("pyarrow")
@needs("polars")
@needs("pandas")
def test_departures_of_any_library() -> None:
    import pandas
    import polars
    import pyarrow

    columns = departures()
    table = pyarrow.table(columns)
    answers = [
        qs.analyze(departures=table),
        qs.analyze(table),
        qs.analyze(departures=pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))),
        qs.analyze(departures=table.to_batches()[0]),
        qs.analyze(departures=polars.DataFrame(columns)),
        qs.analyze(departures=pandas.DataFrame(columns)),
        qs.analyze(departures=qs.table(table)),
        qs.analyze(departures=table.set_column(0, "flow", table["flow"].dictionary_encode())),
        qs.analyze(
            departures=polars.DataFrame(columns).select(
                polars.col("flow").alias("name"),
                "size",
                polars.from_epoch(polars.col("enqueued"), "ns").alias("enqueued"),
                polars.col("dequeued").cast(polars.Duration("ns")),
            ),
            columns={"flow": "name"},
        ),
    ]
    expected = answers[0].to_dict()
    assert expected["totals"]["packets"] == 11 and expected["totals"]["peak_delay_ns"] == 1_200_000
    assert all(answer.to_dict() == expected for answer in answers)
    assert qs.why(table, packet=11).culprits["flow"][0] == "bulk"


@needs("pyarrow")
def test_wrong_departures() -> None:
    import pyarrow

    table = pyarrow.table(departures())
    with pytest.raises(qs.InvalidValueError) as caught:
        qs.analyze(departures=table.rename_columns(["flow", "bytes", "enqueued", "dequeued"]))
    assert "there is no column 'size' for size" in str(caught.value) and "'bytes'" in str(caught.value)
    assert "columns= size=NAME" in str(caught.value)
    with pytest.raises(qs.InvalidValueError, match="column 'enqueued' is of type Boolean"):
        qs.analyze(departures=table.set_column(2, "enqueued", pyarrow.array([True] * 11)))
    with pytest.raises(qs.InvalidValueError, match="of type dict.*Make a table"):
        qs.analyze(departures=departures())  # type: ignore[arg-type]
    with pytest.raises(qs.InvalidValueError, match="departures= is 7"):
        qs.analyze(departures=7)  # type: ignore[arg-type]
    with pytest.raises(qs.InvalidValueError, match="one array of type Int64"):
        qs.analyze(departures=pyarrow.array([1, 2]))


@needs("pyarrow")
def test_rows_that_cannot_be_read_are_counted() -> None:
    import pyarrow

    columns = departures()
    columns["dequeued"][3] = None
    report = qs.analyze(departures=pyarrow.table(columns))
    assert report.totals["packets"] == 10
    assert sum(report.notes["count"]) == 1 and report.damage is not None


@needs("pyarrow")
def test_a_stream_that_fails() -> None:
    import pyarrow

    schema = pyarrow.table(departures()).schema

    def batches() -> Any:
        yield pyarrow.table(departures()).to_batches()[0]
        raise OSError("the cable was cut")

    report = qs.analyze(departures=pyarrow.RecordBatchReader.from_batches(schema, batches()))
    assert report.totals["packets"] == 11 and "the cable was cut" in str(report.damage)
