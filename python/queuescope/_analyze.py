"""``analyze``: which flows filled a queue."""

from __future__ import annotations

import os
from typing import Any, Literal

from . import _queuescope
from ._errors import InvalidValueError
from ._progress import Progress, shown, size
from ._report import Report
from ._table import ArrowStream
from ._types import ColumnsArg, LimitArg, NamesArg, PathArg, RateArg, ShareArg, SizeArg, TimeArg


def given(**arguments: Any) -> dict[str, Any]:
    """The arguments that are not ``None``; the engine has the defaults."""
    return {name: value for name, value in arguments.items() if value is not None}


def analyze(
    path: PathArg | ArrowStream | None = None,
    *,
    rate: RateArg | None = None,
    departures: PathArg | ArrowStream | None = None,
    input: str | None = None,
    by: NamesArg | None = None,
    aqm: str | None = None,
    limit: LimitArg | None = None,
    speedup: str | float | None = None,
    overhead: str | int | None = None,
    split_gso: bool | None = None,
    mtu: int | None = None,
    inner: bool | None = None,
    tau: TimeArg | None = None,
    alpha: ShareArg | None = None,
    ramped: str | float | None = None,
    most_bursts: int | None = None,
    across_classes: TimeArg | None = None,
    victims: str | None = None,
    show: str | None = None,
    snapshots: int | None = None,
    sketch_rows: int | None = None,
    sketch_columns: int | None = None,
    window: TimeArg | None = None,
    memory: SizeArg | None = None,
    estimator: NamesArg | None = None,
    expiry: Literal["tag", "clean", "clean-plain"] | None = None,
    columns: ColumnsArg | None = None,
    time_unit: Literal["s", "ms", "us", "ns"] | None = None,
    depth: bool = True,
    packets: bool = False,
    parquet: PathArg | None = None,
    pcapng: PathArg | None = None,
    progress: Progress = None,
) -> Report:
    """Report which flows filled a queue: that of a link which a capture passes, or any queue whose departures are known.

    The arguments have the names of the command's options (``queuescope analyze --help``).

    Parameters
    ----------
    path
        A capture: pcap or pcapng, plain or compressed with gzip, zstd or xz. An Arrow table is the same as `departures`.
    rate
        The rate at which the link drains the queue, such as ``"20mbps"``, or in bits per second. Required for a capture.
    departures
        Packets that left a queue, in place of a capture: a CSV or Parquet file, or any table with the Arrow PyCapsule interface (polars,
        pyarrow, pandas, DuckDB), which is read batch by batch. It has the columns ``flow``, ``size`` (bytes), ``enqueued`` and
        ``dequeued`` (timestamps, durations, or numbers in `time_unit`), and may have ``class``.
    input
        Only packets that match this expression enter the queue, such as ``"tcp and dst_port == 443"``.
    by
        What a flow is: ``5tuple``, ``conn``, ``src-dst``, ``src``, ``dst``, ``dscp`` or ``vlan``; several as a list, or separated by commas.
        ``src`` and ``dst`` can have a prefix length: ``dst/24``. The default is ``5tuple,dst``.
    aqm
        The discipline or switch program that manages the queue, such as ``"codel,target=10ms"``. The captured senders do not react to
        its drops and marks. The default is tail-drop.
    limit
        The limit of the queue: a size (or a number of bytes), ``"100 packets"``, a time, or ``"none"``. The default is ``"1s"``.
    speedup
        The factor by which packets are sent faster than they were captured.
    overhead
        What the link sends with each packet beyond its bytes in the queue: ``"none"``, ``"ethernet"``, or a number of bytes up to 256.
    split_gso
        Split super-packets of segmentation offload into the packets that the wire carried.
    mtu
        The largest packet of the network in bytes, from 68 to 65535. The default is 1500.
    inner
        Distinguish flows inside tunnels.
    tau
        The least delay at which the queue is congested, such as ``"5ms"``, or in seconds. The default is an eighth of the longest so far.
    alpha
        The least share of the queue at which a flow is a culprit. The default is 0.01.
    ramped
        List only flows whose rate rose in a burst by this factor, at least 2.
    most_bursts
        The number of bursts to keep, those with the longest delays. The default is 1000.
    across_classes
        Use the longest recent delay of any packet, halving in this time (seconds), instead of each packet's own.
    victims
        Examine only the waiting of packets that match this expression.
    show
        List only flows that match this expression.
    snapshots, sketch_rows, sketch_columns, window, memory, estimator, expiry
        The sketch that is compared with the exact counts: its number of snapshots, rows and columns; the time window of a snapshot
        (seconds); its memory (bytes), in place of columns; estimators (``inner``, ``outer``, ``overlap``); how old counts expire.
    columns
        The names of the columns of `departures`, where they differ: ``{"size": "bytes", "flow": ["src", "dst"]}``.
    time_unit
        The unit of times in `departures` whose column does not state one: ``s``, ``ms``, ``us`` or ``ns``, the default.
    depth
        Keep the depth of the queue over time, for :attr:`Report.depth` and the figures of the HTML page.
    packets
        Keep the packets that left the queue, for :attr:`Report.packets`. They take about 60 bytes each.
    parquet
        Write each packet that left the queue to this Parquet file.
    pcapng
        Write the packets to this pcapng file, each with a comment: how long it waited, and its flow's share of the queue.
    progress
        ``True`` for a progress bar, if tqdm is installed; or a function, which is called with the bytes and the packets read so far.

    Returns
    -------
    Report

    Raises
    ------
    InvalidValueError
        If an argument has a wrong value. It is an :class:`ExpressionError` if that is a text of several parts.
    InputError
        If the input cannot be read. It is a :class:`MissingFileError` if the file does not exist. Damage behind the start of a capture is
        not an error: see :attr:`Report.damage`.

    Examples
    --------
    >>> import queuescope as qs
    >>> report = qs.analyze("demo.pcap.xz", rate="20mbps", by="src")
    >>> for flow in report.to_dict()["culprits"][0]["flows"][:1]:
    ...     print(f"{flow['flow']} sends {flow['share']:.0%} of the bytes")
    128.177.163.75 > sends 51% of the bytes
    """
    if path is not None and not isinstance(path, (str, os.PathLike)):
        if departures is not None:
            raise InvalidValueError("two tables of departures are given: leave one out")
        path, departures = None, path
    if (path is None) == (departures is None):
        raise InvalidValueError("give a capture, analyze('trace.pcap', rate='20mbps'), or departures, analyze(departures=table)")
    arguments = given(
        rate=rate, input=input, by=names(by), aqm=aqm, limit=limit, speedup=speedup, overhead=overhead, split_gso=split_gso,
        mtu=mtu, inner=inner, tau=tau, alpha=alpha, ramped=ramped, most_bursts=most_bursts, across_classes=across_classes,
        victims=victims, show=show, snapshots=snapshots, sketch_rows=sketch_rows, sketch_columns=sketch_columns, window=window,
        memory=memory, estimator=names(estimator), expiry=expiry, columns=mapped(columns), time_unit=time_unit, depth=depth,
        packets=packets, parquet=parquet, pcapng=pcapng,
    )  # fmt: skip
    if departures is not None:
        for name in ("aqm", "limit", "speedup", "overhead", "split_gso", "by", "inner", "pcapng"):
            if arguments.get(name) is not None:
                raise InvalidValueError(f"{name}= applies to captures only: departures have left their queue already. Leave it out")
        arguments["departures"] = True
    elif columns is not None or time_unit is not None:
        raise InvalidValueError("columns= and time_unit= are about a table: they need departures=")
    file = path if path is not None else departures
    if isinstance(file, (str, os.PathLike)):
        with shown(progress, size(file), "B") as update:
            return Report(_queuescope.analyze(os.fspath(file), arguments, update))
    with shown(progress, None, "rows") as update:
        return Report(_queuescope.analyze_departures(file, arguments, update))


def names(given_names: NamesArg | None) -> str | list[str] | None:
    """Names as the engine takes them."""
    return given_names if given_names is None or isinstance(given_names, str) else list(given_names)


def mapped(columns: ColumnsArg | None) -> str | dict[str, Any] | None:
    """The columns of departures as the engine takes them."""
    if columns is None or isinstance(columns, str):
        return columns
    return {field: name if isinstance(name, str) else list(name) for field, name in columns.items()}
