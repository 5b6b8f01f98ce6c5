"""``why``: which flows made a packet, a flow, or the packets of a time wait."""

from __future__ import annotations

import os
from typing import Any, Literal

from . import _queuescope
from ._analyze import given, mapped, names
from ._errors import InvalidValueError
from ._progress import Progress, shown, size
from ._report import parsed
from ._table import ArrowStream, Table
from ._types import ColumnsArg, LimitArg, NamesArg, PathArg, RateArg, ShareArg


class Why:
    """The culprits of a victim or a time."""

    __slots__ = ("_fields", "_raw")

    def __init__(self, raw: _queuescope.RawWhy) -> None:
        self._raw = raw
        self._fields: dict[str, Any] = parsed(raw.fields())

    @property
    def culprits(self) -> Table:
        """The flows, with their ``share`` of the bytes.

        ``kind`` is ``direct`` (left while the victims waited; for a moment: in the queue), ``indirect`` (left before that, since the queue
        was last empty) or ``original`` (raised the queue to its levels).
        """
        return Table(self._raw.table())

    @property
    def question(self) -> str:
        """The question, in words."""
        question: str = self._fields["question"]
        return question

    @property
    def victim(self) -> dict[str, Any] | None:
        """The packet that waited longest among those of the question: ``packet``, ``flow``, ``delay_ns``, ..."""
        victim: dict[str, Any] | None = self._fields["victim"]
        return victim

    def to_dict(self) -> dict[str, Any]:
        """All fields of the answer."""
        return parsed(self._raw.fields())  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The answer as the command prints it with ``--json``."""
        return self._raw.json()

    def to_text(self) -> str:
        """The answer as the command prints it, without colours."""
        return self._raw.text()

    def __repr__(self) -> str:
        return f"<Why {self.question}: {self._fields['packets']} packets waited>"

    def _repr_html_(self) -> str:
        return self.culprits._repr_html_()


def why(
    path: PathArg | ArrowStream | None = None,
    *,
    rate: RateArg | None = None,
    departures: PathArg | ArrowStream | None = None,
    packet: int | None = None,
    flow: str | None = None,
    at: str | None = None,
    victims: str | None = None,
    input: str | None = None,
    by: NamesArg | None = None,
    alpha: ShareArg | None = None,
    show: str | None = None,
    limit: LimitArg | None = None,
    speedup: str | float | None = None,
    overhead: str | int | None = None,
    split_gso: bool | None = None,
    mtu: int | None = None,
    inner: bool | None = None,
    columns: ColumnsArg | None = None,
    time_unit: Literal["s", "ms", "us", "ns"] | None = None,
    progress: Progress = None,
) -> Why:
    """Find the flows that made a packet, a flow, or the packets of a time wait.

    Parameters
    ----------
    path, rate, departures, input, by, limit, speedup, overhead, split_gso, mtu, inner, columns, time_unit, progress
        As for :func:`analyze`.
    packet
        The number of a packet in the input, counted from 1; of a table, its row.
    flow
        The name of a flow as :func:`analyze` has it, or a part that occurs in no other name.
    at
        A time after the first packet: a moment such as ``"1.2s"``, for the flows in the queue then; or a range such as ``"1.2s..1.5s"``.
    victims
        Packets that match this expression. One of `packet`, `flow`, `at` and `victims` is required.
    alpha
        The least share of the bytes for a flow to be listed. The default is 0.01.
    show
        List only flows that match this expression.

    Returns
    -------
    Why

    Examples
    --------
    >>> import queuescope as qs
    >>> answer = qs.why("demo.pcap.xz", rate="20mbps", packet=1000)
    >>> answer.culprits.column_names
    ['kind', 'granularity', 'flow', 'bytes', 'share', 'packets']
    """
    if path is not None and not isinstance(path, (str, os.PathLike)):
        path, departures = None, path
    if (path is None) == (departures is None):
        raise InvalidValueError("give a capture, why('trace.pcap', rate='20mbps', packet=7), or departures, why(departures=table, packet=7)")
    if all(question is None for question in (packet, flow, at, victims)):
        raise InvalidValueError("what waited? Give packet=, flow=, at= or victims=")
    if packet is not None and any(question is not None for question in (flow, at, victims)):
        raise InvalidValueError("packet= is a question of its own: leave flow=, at= and victims= out")
    arguments = given(
        rate=rate, packet=packet, flow=flow, at=at, victims=victims, input=input, by=names(by), alpha=alpha, show=show,
        limit=limit, speedup=speedup, overhead=overhead, split_gso=split_gso, mtu=mtu, inner=inner, columns=mapped(columns),
        time_unit=time_unit, departures=True if departures is not None else None,
    )  # fmt: skip
    source = path if path is not None else departures
    total = size(source) if isinstance(source, (str, os.PathLike)) else None
    with shown(progress, total, "B") as update:
        return Why(_queuescope.why(source, arguments, update))
