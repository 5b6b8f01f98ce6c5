"""``simulate`` and ``sweep``: scenarios."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _plot, _queuescope
from ._analyze import given, names
from ._own import CongestionControl, Discipline
from ._progress import Progress, shown
from ._report import Report, parsed
from ._scenario import ScenarioArg, described
from ._table import Table
from ._types import NamesArg, PathArg, ShareArg, SizeArg, TimeArg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The steps of a simulation's progress.
_STEPS = 1000


class Simulation(Report):
    """The report of a simulation: that of a metered queue, with the links and flows of the scenario."""

    __slots__ = ()

    @property
    def links(self) -> Table:
        """The links: rates, packets sent, drops, utilisation, and sojourn times in their queues."""
        return self._table("links")

    @property
    def flows(self) -> Table:
        """The flows: goodput, retransmissions, round-trip time."""
        return self._table("flows")

    @property
    def flow_groups(self) -> Table:
        """The groups of flows: goodput, fairness (``jain``), completion times."""
        return self._table("flow_groups")

    @property
    def link_samples(self) -> Table:
        """The state of each link over time, if the scenario has ``record.interval``."""
        return self._table("link_samples")

    @property
    def flow_samples(self) -> Table:
        """The state of the first flows over time, if the scenario has ``record.interval``."""
        return self._table("flow_samples")

    @property
    def scenario(self) -> str:
        """The complete scenario as it was run, with all defaults, as TOML."""
        scenario: str = self._all()["sim"]["scenario"]
        return scenario

    def __repr__(self) -> str:
        sim = self._all()["sim"]
        return f"<Simulation {sim['name'] or self._all()['input']['name']}: {sim['duration_ns'] / 1e9:g} s, {len(sim['flows'])} flows, link {sim['meter']}>"


def simulate(
    scenario: ScenarioArg,
    *,
    set: Mapping[str, Any] | None = None,
    disciplines: Mapping[str, Callable[[], Discipline]] | None = None,
    controls: Mapping[str, Callable[[], CongestionControl]] | None = None,
    meter: str | None = None,
    input: str | None = None,
    by: NamesArg | None = None,
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
    depth: bool = True,
    packets: bool = False,
    parquet: PathArg | None = None,
    telemetry: PathArg | None = None,
    progress: Progress = None,
    **overrides: Any,
) -> Simulation:
    """Simulate a scenario, and analyse its metered queue.

    Parameters
    ----------
    scenario
        The path of a scenario file (TOML), the text of one, or a dictionary with the same keys. ``docs/reference/scenario-keys.md`` lists
        the keys.
    set
        Values that replace those of the scenario, by their paths: ``{"link.rate": "10mbps", "flows.0.count": 50}``.
    **overrides
        The same as keyword arguments: ``duration="5s"``, ``link={"rate": "10mbps"}``, or ``link__rate="10mbps"``.
    disciplines
        Disciplines that are written in Python (:class:`Discipline`), by the names of the links whose queues they manage. Without
        ``[[wires]]``, the link is ``bottleneck``. Each packet calls Python, so that the simulation is some hundred times slower.
    controls
        Congestion controls that are written in Python (:class:`CongestionControl`), by the names of groups of flows. Also slow.
    meter
        The link whose queue is analysed; ``"none"`` for none. The default is that of the scenario.
    telemetry
        Write the path of each packet, with its delay at each queue, to this Parquet file.
    input, by, tau, alpha, ramped, most_bursts, across_classes, victims, show, snapshots, sketch_rows, sketch_columns, window, memory, \
estimator, expiry, depth, packets, parquet
        As for :func:`analyze`.
    progress
        ``True`` for a progress bar, if tqdm is installed; or a function, which is called with the steps (of 1000) and the packets so far.

    Returns
    -------
    Simulation

    Raises
    ------
    ExpressionError
        If the scenario is wrong. The message shows where.
    MissingFileError
        If the file does not exist.

    Examples
    --------
    >>> import queuescope as qs
    >>> network = {
    ...     "link": {"rate": "10mbps", "delay": "10ms", "limit": "256kB"},
    ...     "flows": [{"name": "download", "tcp": "cubic"}],
    ... }
    >>> for discipline in ["tail-drop", "codel"]:
    ...     simulation = qs.simulate(network, duration="5s", link__discipline=discipline)
    ...     print(discipline, simulation.links["sojourn_p50_ns"][0] > 50_000_000)
    tail-drop True
    codel False
    """
    arguments = given(
        disciplines=None if disciplines is None else dict(disciplines), controls=None if controls is None else dict(controls),
        meter=meter, input=input, by=names(by), tau=tau, alpha=alpha, ramped=ramped, most_bursts=most_bursts,
        across_classes=across_classes, victims=victims, show=show, snapshots=snapshots, sketch_rows=sketch_rows,
        sketch_columns=sketch_columns, window=window, memory=memory, estimator=names(estimator), expiry=expiry, depth=depth,
        packets=packets, parquet=parquet, telemetry=telemetry,
    )  # fmt: skip
    source = described(scenario, {**(set or {}), **overrides})
    with shown(progress, _STEPS, "steps") as update:
        return Simulation(_queuescope.simulate(source, arguments, update))


def explain(scenario: ScenarioArg, *, set: Mapping[str, Any] | None = None, **overrides: Any) -> str:
    """The scenario with all defaults, as TOML, without running it.

    Parameters
    ----------
    scenario, set, **overrides
        As for :func:`simulate`.

    Examples
    --------
    >>> import queuescope as qs
    >>> "rate" in qs.explain({"flows": [{"name": "bulk"}]})
    True
    """
    return _queuescope.explain(described(scenario, {**(set or {}), **overrides}))


class Sweep:
    """The results of a sweep: many simulations, and their comparison."""

    __slots__ = ("_raw",)

    def __init__(self, raw: _queuescope.RawSweep) -> None:
        self._raw = raw

    @property
    def cells(self) -> Table:
        """One row for each simulation: the varied values, the ``seed``, and the figures."""
        return Table(self._raw.cells)

    @property
    def rows(self) -> Table:
        """One row for each combination of values, over its seeds.

        ``delay_p95_ns`` is a mean, and ``delay_p95_ns_half_width`` half the width of its 95 % confidence interval; likewise for the others.
        """
        return Table(self._raw.rows)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the comparison."""
        return parsed(self._raw.fields())  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The comparison as the command prints it with ``--json``."""
        return self._raw.json()

    def to_text(self) -> str:
        """The comparison as the command prints it, without colours."""
        return self._raw.text()

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The comparison as a page for a browser; written to `path` if that is given."""
        page = self._raw.html()
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def plot(self, figure_of: str = "delay_p95_ns", *, x: str | None = None, ax: Axes | None = None) -> Axes:
        """One figure of all combinations, with 95 % confidence intervals. It needs matplotlib.

        Parameters
        ----------
        figure_of
            The figure, a column of :attr:`rows`, such as ``"goodput_bps"``.
        x
            The parameter along the axis. The default is the last one. Each combination of the others has a line.
        ax
            Where to draw it. The default is a new figure.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        InvalidValueError
            If the figure is unknown, or the parameter is not varied.
        """
        return _plot.sweep(self, figure_of, x=x, ax=ax)

    def __len__(self) -> int:
        return self._raw.cells.num_rows

    def __repr__(self) -> str:
        return f"<Sweep: {len(self)} simulations, {self._raw.rows.num_rows} combinations>"

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def sweep(
    scenario: ScenarioArg,
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    seeds: int | None = None,
    set: Mapping[str, Any] | None = None,
    meter: str | None = None,
    jobs: int | None = None,
    results: PathArg | None = None,
    progress: Progress = None,
    **overrides: Any,
) -> Sweep:
    """Simulate many variants of a scenario, on all cores, and compare them.

    Parameters
    ----------
    scenario, set, **overrides
        As for :func:`simulate`.
    over
        The values to vary, by their paths; all combinations are run. Added to those of the scenario's ``[sweep]``.
    seeds
        The number of simulations of each combination, with different random numbers.
    meter
        The link that the figures are about. The default is that of the scenario.
    jobs
        The number of simulations that run at a time. The default is one on each core.
    results
        A folder that keeps results: a later sweep uses those that it has in common with this one.
    progress
        ``True`` for a progress bar, if tqdm is installed; or a function, which is called with the simulations so far and 0.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> import queuescope as qs
    >>> network = {"duration": "2s", "flows": [{"name": "download", "tcp": "cubic"}]}
    >>> result = qs.sweep(network, {"link.rate": ["5mbps", "10mbps"]}, seeds=2)
    >>> result
    <Sweep: 4 simulations, 2 combinations>
    >>> result.rows["link.rate"].to_list()
    ['5mbps', '10mbps']
    """
    values: dict[str, Any] = {**(set or {}), **overrides}
    if seeds is not None:
        values["sweep.seeds"] = seeds
    arguments = given(meter=meter, jobs=jobs, results=results)
    with shown(progress, None, "simulations") as update:
        return Sweep(_queuescope.sweep(described(scenario, values, over), arguments, update))
