"""``tap``: the queue in a router, from captures before and behind it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from . import _queuescope
from ._analyze import given, names
from ._progress import Progress, shown
from ._report import Report
from ._types import NamesArg, PathArg, RateArg, ShareArg, SizeArg, TimeArg


def tap(
    ingress: PathArg | Sequence[PathArg],
    egress: PathArg,
    *,
    rate: RateArg | None = None,
    ingress_rate: NamesArg | None = None,
    stamps: Literal["first", "last"] | None = None,
    max_delay: TimeArg | None = None,
    nat: Literal["none", "addresses", "payload"] | None = None,
    checksums: bool | None = None,
    shared_clock: bool | None = None,
    unseen: Literal["unknown", "neighbours"] | None = None,
    input: str | None = None,
    by: NamesArg | None = None,
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
    depth: bool = True,
    packets: bool = False,
    parquet: PathArg | None = None,
    progress: Progress = None,
) -> Report:
    """Report which flows filled the queue in a router, from captures on both of its sides.

    Parameters
    ----------
    ingress
        The captures of the links into the router: one, or a list.
    egress
        The capture of the link out of the router, whose queue is analysed.
    rate
        The rate of the link out of the router, if it is known. The transmission time of a packet is then subtracted from its delay.
    ingress_rate
        The rates of the links into the router: one for all, or one for each. Needed only with ``stamps="first"``.
    stamps
        The bit of a packet at which captures take its timestamp: ``last``, the default, or ``first``.
    max_delay
        The longest time that a packet can be in the router (seconds). The default is ``"200ms"``.
    nat
        What the router changes in packets: ``none``, ``addresses``, or all but the ``payload``.
    checksums
        Compare transport checksums, too.
    shared_clock
        The timestamps of all ingress captures are from one clock.
    unseen
        How to treat packets that were not captured on their way in: they arrived at ``unknown`` times, or between their ``neighbours``.
    input, by, inner, tau, alpha, ramped, most_bursts, across_classes, victims, show, snapshots, sketch_rows, sketch_columns, window, \
memory, estimator, expiry, depth, packets, parquet, progress
        As for :func:`analyze`.

    Returns
    -------
    Report
        ``to_dict()["tap"]`` has how packets were matched, and the clocks of the captures.
    """
    arguments = given(
        rate=rate, ingress_rate=names(ingress_rate), stamps=stamps, max_delay=max_delay, nat=nat, checksums=checksums,
        shared_clock=shared_clock, unseen=unseen, input=input, by=names(by), inner=inner, tau=tau, alpha=alpha, ramped=ramped,
        most_bursts=most_bursts, across_classes=across_classes, victims=victims, show=show, snapshots=snapshots,
        sketch_rows=sketch_rows, sketch_columns=sketch_columns, window=window, memory=memory, estimator=names(estimator),
        expiry=expiry, depth=depth, packets=packets, parquet=parquet,
    )  # fmt: skip
    before = [ingress] if isinstance(ingress, (str, os.PathLike)) else list(ingress)
    with shown(progress, None, "B") as update:
        return Report(_queuescope.tap([os.fspath(path) for path in before], os.fspath(egress), arguments, update))
