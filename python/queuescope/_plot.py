"""Figures of reports and sweeps with matplotlib, in the colours of the HTML report."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ._errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._report import Report
    from ._simulate import Sweep

#: The colours of flows, which people who do not see all colours can distinguish (Okabe and Ito), and that of all others.
_FLOWS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a300", "#6f3c8f")
_OTHERS = "#b4bdc7"
#: Hatches, for flows beyond the colours and for print.
_HATCHES = ("", "///", "...")
_BURST = "#5a697d"
_INK = "#17202a"
_RULE = "#dfe4ea"
#: Markers of the lines of a sweep, besides their colours.
_MARKERS = "osD^vPX*"
#: Characters of a flow's name in a figure.
_MOST_NAME = 46

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_STYLE: Mapping[str, Any] = {
    "axes.edgecolor": _RULE,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "grid.color": _RULE,
    "hatch.color": "white",
    "hatch.linewidth": 0.5,
    "legend.fontsize": "small",
    "legend.frameon": False,
}


def _styled(draw: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Draws in the style of all figures, without changing that of others."""

    @functools.wraps(draw)
    def styled(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        with _pyplot().rc_context(_STYLE):
            return draw(*arguments, **named)

    return styled


@_styled
def whole(report: Report) -> Figure:
    """The depth of the queue, the delays and the culprits of a report, in one figure."""
    figure: Figure = _pyplot().figure(figsize=(9.6, 7.2))
    axes = figure.subplot_mosaic([["depth", "depth"], ["delays", "culprits"]], height_ratios=[4, 3])
    depth(report, axes["depth"])
    delays(report, axes["delays"])
    culprits(report, axes["culprits"])
    return figure


@_styled
def depth(report: Report, ax: Axes | None = None) -> Axes:
    """The depth of the queue over time, stacked by flow; bursts have a grey background."""
    ax = _axes(ax)
    table = report.depth_by_flow
    buckets = report.depth
    start = buckets["time_ns"][0] if buckets.num_rows else 0
    flows: dict[str | None, tuple[list[float], list[float]]] = {}
    for row in table.rows():
        times, bytes_ = flows.setdefault(row["flow"], ([], []))
        times.append((row["time_ns"] - start) / 1e9)
        bytes_.append(row["mean_bytes"] / 1e3)
    # The largest lie at the bottom; all others, without a name, on top.
    if flows:
        styles = [_style(place, flow) for place, flow in enumerate(flows)]
        layers = ax.stackplot(
            next(iter(flows.values()))[0],
            *[heights for _, heights in flows.values()],
            labels=[_short(flow) if flow is not None else "all others" for flow in flows],
            colors=[colour for colour, _ in styles],
            linewidth=0,
        )
        for layer, (_, hatch) in zip(layers, styles, strict=True):
            if hatch:
                layer.set_hatch(hatch)
    for burst in report.bursts.rows():
        begins = (burst["start_ns"] - start) / 1e9
        ax.axvspan(begins, begins + burst["length_ns"] / 1e9, color=_BURST, alpha=0.1, linewidth=0, zorder=0)
    ax.set(xlabel="time (s)", ylabel="in the queue (kB)", title="Depth of the queue by flow")
    ax.margins(x=0)
    ax.set_ylim(bottom=0)
    if flows:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return ax


@_styled
def delays(report: Report, ax: Axes | None = None) -> Axes:
    """How many packets waited longer than a time: from every packet if the report has them, otherwise from the percentiles."""
    ax = _axes(ax)
    packets = report.packets
    if packets is not None and packets.num_rows:
        waits = sorted(left - came for came, left in zip(packets["enqueued"], packets["dequeued"], strict=True))
        count = len(waits)
        ax.step([wait / 1e6 for wait in waits], [1 - place / count for place in range(count)], where="post", color=_FLOWS[0])
    else:
        rows = [row for row in report.delays.rows() if row["percentile"] < 100]
        shares = [1 - row["percentile"] / 100 for row in rows]
        ax.plot([row["delay_ns"] / 1e6 for row in rows], shares, color=_FLOWS[0], marker="o")
        longest = report.totals["peak_delay_ns"] / 1e6
        ax.axvline(longest, color=_BURST, linestyle=":", label=f"longest: {longest:.3g} ms")
        ax.legend(loc="lower left")
    ax.set_yscale("log")
    ax.set(xlabel="delay (ms)", ylabel="share of packets that waited longer", title="Delays")
    ax.grid(True, axis="y")
    return ax


@_styled
def culprits(report: Report, ax: Axes | None = None, *, most: int = 8) -> Axes:
    """The shares of the flows that filled the queue in all bursts, at the first granularity."""
    ax = _axes(ax)
    rows = [row for row in report.culprits.rows() if row["burst"] is None]
    rows = [row for row in rows if row["granularity"] == rows[0]["granularity"]][:most]
    drawn = [flow for flow in dict.fromkeys(report.depth_by_flow["flow"])] if _has_depth(report) else []
    for place, row in enumerate(rows):
        # The same colour as in the picture of the depth.
        colour, hatch = _style(drawn.index(row["flow"]), row["flow"]) if row["flow"] in drawn else (_OTHERS, "")
        ax.barh(place, row["share"] * 100, height=0.4, color=colour, hatch=hatch or None)
        ax.text(0, place - 0.25, f"{row['share']:.1%}  {_short(row['flow'])}", va="bottom", fontsize="small")
    ax.set_yticks([])
    ax.set(xlabel="share of the bytes that left during bursts (%)", title="Culprits", xlim=(0, 100))
    # The largest share is at the top.
    ax.set_ylim(len(rows) - 0.6, -0.9)
    return ax


@_styled
def sweep(result: Sweep, figure_of: str = "delay_p95_ns", *, x: str | None = None, ax: Axes | None = None) -> Axes:
    """A figure of each combination with its 95 % confidence interval: a line for each combination of the other parameters."""
    ax = _axes(ax)
    rows = list(result.rows.rows())
    parameters = [parameter["path"] for parameter in result.to_dict()["parameters"]]
    names = [name.removesuffix("_half_width") for name in result.rows.column_names if name.endswith("_half_width")]
    if figure_of not in names:
        raise InvalidValueError(f"a sweep has no figure '{figure_of}': use one of {', '.join(names)}")
    along = x if x is not None else (parameters[-1] if parameters else None)
    if along is not None and along not in parameters:
        raise InvalidValueError(f"'{along}' is not varied: use one of {', '.join(parameters)}")
    places = list(dict.fromkeys(row[along] for row in rows)) if along is not None else [""]
    lines: dict[str, list[tuple[int, float, float]]] = {}
    for row in rows:
        if row[figure_of] is None:
            continue
        label = ", ".join(f"{path} = {row[path]}" for path in parameters if path != along)
        place = places.index(row[along]) if along is not None else 0
        half = row[f"{figure_of}_half_width"]
        lines.setdefault(label, []).append((place, row[figure_of], half if half is not None else 0.0))
    scale, unit = (1e6, " (ms)") if figure_of.endswith("_ns") else (1e6, " (Mb/s)") if figure_of.endswith("_bps") else (1, "")
    # Between names there is nothing to draw a line through.
    is_ordered = all(re.match(r"[0-9.]", str(place)) for place in places)
    for number, (label, points) in enumerate(lines.items()):
        beside = 0.0 if is_ordered else 0.12 * (number - (len(lines) - 1) / 2)
        ax.errorbar(
            [place + beside for place, _, _ in points],
            [value / scale for _, value, _ in points],
            yerr=[half / scale for _, _, half in points],
            label=label or None,
            color=_FLOWS[number % len(_FLOWS)],
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle="-" if is_ordered else "none",
            capsize=3,
        )
    ax.set_xticks(range(len(places)), [str(place) for place in places])
    ax.set_xlim(-0.5, len(places) - 0.5)
    name = figure_of.removesuffix("_ns").removesuffix("_bps").replace("_", " ")
    ax.set(xlabel=along or "", ylabel=f"{name}{unit}")
    ax.set_ylim(bottom=0)
    ax.grid(True, axis="y")
    if any(lines):
        ax.legend()
    return ax


def _has_depth(report: Report) -> bool:
    return report.to_dict().get("series") is not None


def _style(place: int, flow: str | None) -> tuple[str, str]:
    """The colour and the hatch of a flow."""
    if flow is None:
        return _OTHERS, ""
    return _FLOWS[place % len(_FLOWS)], _HATCHES[place // len(_FLOWS) % len(_HATCHES)]


def _short(name: str) -> str:
    return name if len(name) <= _MOST_NAME else name[: _MOST_NAME - 1] + "…"


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = _pyplot().subplots(figsize=(9.6, 4.2))[1]
    return axes


def _pyplot() -> Any:
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install matplotlib") from error
