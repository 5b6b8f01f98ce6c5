"""Logs in folders: headers of packets, found again by expressions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from . import _queuescope
from ._analyze import given, names
from ._errors import InvalidValueError
from ._progress import Progress, shown, size
from ._table import ArrowStream, Table
from ._types import NamesArg, PathArg, SizeArg, TimeArg


class Answer(Table):
    """The answer to a query: a :class:`Table` with notes."""

    __slots__ = ("damage", "notes")

    def __init__(self, raw: _queuescope.RawAnswer) -> None:
        super().__init__(raw.table)
        #: What was skipped: ``reason``, ``count``, ``meaning``.
        self.notes = Table(raw.notes)
        #: What could not be read, if the input is damaged: the answer is of the rest.
        self.damage: str | None = raw.damage


def query(
    path: PathArg,
    expression: str = "",
    *,
    select: NamesArg | None = None,
    group: NamesArg | None = None,
    top: int | None = None,
    limit: int | None = None,
    start: TimeArg | None = None,
    end: TimeArg | None = None,
    in_queue: bool | None = None,
    inner: bool | None = None,
    memory: SizeArg | None = None,
    progress: Progress = None,
) -> Answer:
    """Find the packets of a capture or of a recorded folder that match an expression, or compute figures of them.

    Parameters
    ----------
    path
        A capture, or a folder that :func:`record` or the command made.
    expression
        The packets to find: ``"tcp and dst_port == 443"``, or in pcap's syntax ``"tcp port 443"``. All packets if it is empty.
    select
        Attributes of each packet (``"ts,src_ip"``), or figures of all packets and with `group` of each group: ``count``,
        ``sum(length)``, ``min(ttl)``, ``max(length)``, ``mean(length)``, ``stddev(length)``, ``distinct(src_ip)``.
    group
        Group packets by these attributes; ``ts/10ms`` groups by intervals of 10 ms.
    top
        Only the groups in which the first selected figure is highest, this many.
    limit
        Only the first packets, this many.
    start, end
        The time range: from `start` up to, but without, `end`. Times after the first packet (text, or seconds), or dates such as
        ``"2021-07-23T16:56:49Z"``.
    in_queue
        Find the packets that were in the same queue while the matching packets waited, in place of those.
    inner
        Use addresses and ports inside tunnels. For captures only.
    memory
        The largest memory for packets of a capture, or for groups (bytes).
    progress
        As for :func:`analyze`.

    Returns
    -------
    Answer
        A table with a column for each attribute or figure.

    Examples
    --------
    >>> import queuescope as qs
    >>> answer = qs.query("demo.pcap.xz", "tcp", group="dst_ip", select="sum(length),count", top=3)
    >>> answer.column_names
    ['dst_ip', 'sum(length)', 'count']
    """
    arguments = given(
        select=_listed(select), group=_listed(group), top=top, limit=limit, start=start, end=end, in_queue=in_queue, inner=inner,
        memory=memory,
    )  # fmt: skip
    with shown(progress, size(path), "B") as update:
        return Answer(_queuescope.query(os.fspath(path), expression, arguments, update))


def record(
    path: PathArg,
    folder: PathArg,
    *,
    where: str | None = None,
    inner: bool | None = None,
    sample: int | None = None,
    index: NamesArg | None = None,
    filters: Sequence[str] | None = None,
    aggregates: Sequence[str] | None = None,
    triggers: Sequence[str] | None = None,
    definitions: str | None = None,
    memory: SizeArg | None = None,
    progress: Progress = None,
) -> Log:
    """Record the headers of a capture to a folder, which is made, or continued.

    Parameters
    ----------
    path
        A capture.
    folder
        The folder.
    where
        Only packets that match this expression.
    inner
        Use addresses and ports inside tunnels.
    sample
        Record one of this many packets, at random.
    index
        Attributes to index, so that packets with a rare value are found fast.
    filters, aggregates, triggers
        What to compute meanwhile, and to keep with the folder: ``["web=tcp port 443"]``, ``["bytes=sum(length)@web"]``,
        ``["busy=bytes > 100MB@10ms/1s"]``.
    definitions
        The text (TOML) of a file with such definitions.
    memory
        The largest memory (bytes).
    progress
        As for :func:`analyze`.

    Returns
    -------
    Log

    Examples
    --------
    >>> import queuescope as qs
    >>> log = qs.record("demo.pcap.xz", "traffic", where="tcp", aggregates=["bytes=sum(length)"], triggers=["busy=bytes > 100kB@10ms/100ms"])
    >>> log.query("length > 1000B", select="count")["count"][0] > 0
    True
    >>> sum(1 for alert in log.alerts()) > 0
    True
    """
    arguments = given(
        where=where, inner=inner, sample=sample, index=_listed(index), filters=None if filters is None else list(filters),
        aggregates=None if aggregates is None else list(aggregates), triggers=None if triggers is None else list(triggers),
        definitions=definitions, memory=memory,
    )  # fmt: skip
    with shown(progress, size(path), "B") as update:
        _queuescope.record(os.fspath(path), os.fspath(folder), arguments, update)
    return Log.open(folder)


class Log:
    """A log of packets in a folder.

    :meth:`open` reads it, also while it is recorded to; :meth:`create` and :meth:`append` write it.

    Examples
    --------
    >>> import queuescope as qs
    >>> qs.record("demo.pcap.xz", "traffic")
    <Log traffic>
    >>> qs.Log.open("traffic").query("udp", group="dst_port", top=1).column_names
    ['dst_port', 'count']
    """

    __slots__ = ("_writer", "folder")

    def __init__(self, folder: PathArg, writer: _queuescope.RawWriter | None = None) -> None:
        #: The path of the folder.
        self.folder = os.fspath(folder)
        self._writer = writer

    @classmethod
    def open(cls, folder: PathArg) -> Log:
        """Open a folder to read it.

        Raises
        ------
        MissingFileError
            If it does not exist.
        InputError
            If it has no log.
        """
        _queuescope.check_folder(os.fspath(folder))
        return cls(folder)

    @classmethod
    def create(cls, folder: PathArg, schema: Literal["packet", "departure", "queued"] = "departure") -> Log:
        """Open a folder to append to it; make it if it does not exist.

        Close the log (:meth:`close`, or a ``with`` statement) when everything is appended. One process at a time may append to a folder.

        Parameters
        ----------
        folder
            The folder.
        schema
            The kind of records of a new folder; :meth:`attributes` lists their attributes.

        Examples
        --------
        >>> import queuescope as qs
        >>> departures = qs.query("demo.pcap.xz", "tcp", select="ts,src_ip,dst_ip,length", limit=100)
        >>> with qs.Log.create("small", schema="packet") as log:
        ...     log.append(departures)
        100
        >>> qs.Log.open("small").query().num_rows
        100
        """
        return cls(folder, _queuescope.RawWriter(os.fspath(folder), schema))

    def append(self, batch: ArrowStream) -> int:
        """Append records.

        Parameters
        ----------
        batch
            A table of any library, whose columns are attributes, of the types that :meth:`query` returns. Other attributes are zero.

        Returns
        -------
        int
            The number of records that were added. Those with a time from the year 2262 on are refused.
        """
        if self._writer is None:
            raise InvalidValueError("this log is open for reading: open it by Log.create() to append to it")
        added, _ = self._writer.append(batch)
        return added

    def query(
        self,
        expression: str = "",
        *,
        select: NamesArg | None = None,
        group: NamesArg | None = None,
        top: int | None = None,
        limit: int | None = None,
        start: TimeArg | None = None,
        end: TimeArg | None = None,
        in_queue: bool | None = None,
        memory: SizeArg | None = None,
        progress: Progress = None,
    ) -> Answer:
        """Find records, or compute figures of them. The arguments are those of :func:`queuescope.query`."""
        return query(
            self.folder, expression, select=select, group=group, top=top, limit=limit, start=start, end=end, in_queue=in_queue,
            memory=memory, progress=progress,
        )  # fmt: skip

    def attributes(self) -> Table:
        """The attributes of the records: ``name`` and ``description``."""
        return Table(_queuescope.attributes(self.folder, ""))

    def alerts(self, *, wait: bool = False, from_now: bool = False) -> Iterator[dict[str, Any]]:
        """The alerts of the folder's triggers, in order: dictionaries with ``trigger``, ``at``, ``value`` and others.

        Parameters
        ----------
        wait
            Wait for more alerts as long as a process records to the folder.
        from_now
            Leave out the alerts that are there already.
        """
        raw = _queuescope.RawAlerts(self.folder, from_now)
        while True:
            lines, recorded = raw.more()
            for line in lines.splitlines():
                yield json.loads(line)
            if not lines:
                if not (wait and recorded):
                    return
                time.sleep(0.05)

    def close(self) -> None:
        """End appending. Nothing happens if the log is open for reading, or closed."""
        if self._writer is not None:
            self._writer.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Log {self.folder}>"


def _listed(items: NamesArg | None) -> str | None:
    listed = names(items)
    return ",".join(listed) if isinstance(listed, list) else listed
