"""The report of an analysis."""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _plot, _queuescope
from ._table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Fields that JSON has as strings of digits, since they can exceed 2**53.
_DIGITS = frozenset(
    (
        "active_ns arrived_ns at_ns bytes delivered_bytes departed_bytes duration_ns finished_ns first_ns length_ns "
        "limited_ns offered_bytes offset_ns peak_at_ns rate_bps seed sent_bytes since_ns start_ns started_ns time_ns total_delay_ns "
        "warmup_ns wasted_ns"
    ).split()
)


def parsed(text: str) -> Any:
    """JSON of the engine, with strings of digits as integers."""
    return json.loads(text, object_hook=_with_integers)


def _with_integers(fields: dict[str, Any]) -> dict[str, Any]:
    for name, value in fields.items():
        if name in _DIGITS and isinstance(value, str):
            fields[name] = int(value)
    return fields


class Report:
    """What an analysis found: the bursts in which the queue was congested, and the flows that filled it.

    Functions such as :func:`analyze` and :func:`simulate` return it. Its parts are tables (:class:`Table`), whose times are integers in
    nanoseconds (``_ns``) from the first packet; ``to_dict()["input"]["first_ns"]`` is when that came. Sizes are in bytes, rates in bits
    per second (``_bps``), and shares are fractions of 1.

    Examples
    --------
    >>> import queuescope as qs
    >>> report = qs.analyze("demo.pcap.xz", rate="20mbps")
    >>> report
    <Report of demo.pcap.xz: ... packets, ... bursts, longest delay ... ms>
    >>> worst = report.to_dict()["culprits"][0]["flows"][0]
    >>> 0 < worst["share"] <= 1
    True
    """

    __slots__ = ("_fields", "_raw")

    def __init__(self, raw: _queuescope.RawReport) -> None:
        self._raw = raw
        self._fields: dict[str, Any] | None = None

    @property
    def bursts(self) -> Table:
        """The bursts, in order of time: one row each, with ``number``, ``start_ns``, ``length_ns``, ``peak_delay_ns``, ..."""
        return self._table("bursts")

    @property
    def culprits(self) -> Table:
        """The flows that filled the queue, with their ``share`` of the bytes.

        Rows without a ``burst`` are of all bursts together. The others are of one burst, by its number. ``granularity`` is what a flow is
        (see ``by`` of :func:`analyze`).
        """
        return self._table("culprits")

    @property
    def groups(self) -> Table:
        """What the flows of a burst have in common, if several together explain what no single flow does."""
        return self._table("groups")

    @property
    def delays(self) -> Table:
        """The delays of all packets: columns ``percentile`` (50, 90, 99, 99.9, 100) and ``delay_ns``."""
        return self._table("delays")

    @property
    def depth(self) -> Table:
        """The depth of the queue over time: ``time_ns`` (start of a bucket), ``mean_bytes``, ``peak_delay_ns``, ``drops``."""
        return self._table("depth")

    @property
    def depth_by_flow(self) -> Table:
        """The depth of the queue over time for each of the largest flows: ``time_ns``, ``flow``, ``mean_bytes``.

        Rows without a ``flow`` are of all other flows. The sum over the flows is ``mean_bytes`` of :attr:`depth`.
        """
        return self._table("depth_by_flow")

    @property
    def sketch(self) -> Table:
        """The accuracy of the sketch: ``precision``, ``recall`` and others for each estimator."""
        return self._table("sketch")

    @property
    def notes(self) -> Table:
        """What was skipped, cut short or corrected: ``reason``, ``count``, ``meaning``."""
        return self._table("notes")

    @property
    def packets(self) -> Table | None:
        """The packets that left the queue, if they were kept (``packets=True``)."""
        packets = self._raw.packets
        return None if packets is None else Table(packets)

    @property
    def totals(self) -> dict[str, Any]:
        """Counts and extremes of the whole input."""
        totals: dict[str, Any] = self._all()["totals"]
        return totals

    @property
    def damage(self) -> str | None:
        """What ended the input early, if it is damaged. The report is of what precedes the damage."""
        damage: str | None = self._all()["input"]["damage"]
        return damage

    def to_dict(self) -> dict[str, Any]:
        """All fields of the report, as Python's dictionaries, lists, numbers and strings.

        ``docs/reference/json.md`` describes the fields. Integers that JSON has as strings of digits are integers here.
        """
        return parsed(self._raw.fields())  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The report as the command prints it with ``--json``: one JSON object on each line."""
        return self._raw.json()

    def to_text(self) -> str:
        """The report as the command prints it, without colours."""
        return self._raw.text()

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as a page for a browser, as the command writes it with ``--html``.

        Parameters
        ----------
        path
            A file to write the page to.

        Returns
        -------
        str
            The page: one file without references to others.
        """
        page = self._raw.html()
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def plot(self) -> Figure:
        """A figure of the depth of the queue by flow, the delays, and the culprits. It needs matplotlib.

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import queuescope as qs
        >>> figure = qs.analyze("demo.pcap.xz", rate="20mbps").plot()  # doctest: +SKIP
        """
        return _plot.whole(self)

    def plot_depth(self, ax: Axes | None = None) -> Axes:
        """The depth of the queue over time, stacked by flow; bursts have a grey background. Drawn on `ax`, or on a new figure."""
        return _plot.depth(self, ax)

    def plot_delays(self, ax: Axes | None = None) -> Axes:
        """The share of packets that waited longer than a time: of each packet with ``packets=True``, otherwise by the percentiles."""
        return _plot.delays(self, ax)

    def plot_culprits(self, ax: Axes | None = None, *, most: int = 8) -> Axes:
        """The shares of the flows that filled the queue over all bursts, at most `most` of them."""
        return _plot.culprits(self, ax, most=most)

    def __repr__(self) -> str:
        fields = self._all()
        totals = fields["totals"]
        bursts = len(fields["bursts"]) + fields["bursts_omitted"]
        return (
            f"<Report of {fields['input']['name']}: {totals['packets']} packets, {bursts} bursts, "
            f"longest delay {totals['peak_delay_ns'] / 1e6:.3g} ms>"
        )

    def _repr_html_(self) -> str:
        culprits = self._all()["culprits"]
        flows = culprits[0]["flows"][:5] if culprits else []
        rows = "".join(f"<tr><td>{flow['share']:.1%}</td><td>{escape(flow['flow'])}</td></tr>" for flow in flows)
        listed = f"<table><thead><tr><th>share</th><th>culprit</th></tr></thead><tbody>{rows}</tbody></table>" if rows else ""
        return f"<p>{escape(repr(self)[1:-1])}</p>{listed}"

    def _table(self, part: str) -> Table:
        return Table(self._raw.table(part))

    def _all(self) -> dict[str, Any]:
        if self._fields is None:
            self._fields = self.to_dict()
        return self._fields
