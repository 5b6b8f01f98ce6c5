"""Sketches over batches of packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from . import _queuescope
from ._analyze import given
from ._table import Column
from ._types import SizeArg, TimeArg

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Whole numbers that are not negative: an array with the buffer protocol (numpy, ``array.array``), or a sequence.
NumbersArg: TypeAlias = "Buffer | Sequence[int]"
#: Which windows count for a packet's wait.
Estimator: TypeAlias = Literal["inner", "outer", "overlap"]


class ConQuest:
    """ConQuest's snapshots (Chen et al., CoNEXT 2019): how many bytes of a flow left a queue while a packet waited.

    Parameters
    ----------
    longest
        The longest wait to cover, such as ``"4ms"``, or in seconds. The dimensions that fit `memory` follow.
    memory
        The memory (bytes). The default is 64 KiB.
    window, columns
        In place of `longest`: the time window of a snapshot (seconds), and the columns of each.
    snapshots
        The number of snapshots. The default is 8.
    rows
        The rows of each snapshot. The default is 2.
    expiry
        How old counts expire: by a ``tag`` of their window, or by cleaning (``clean``, ``clean-plain``).
    seed
        Chooses the hash functions.

    Examples
    --------
    >>> import queuescope as qs
    >>> sketch = qs.ConQuest(longest="4ms", memory="64KiB")
    >>> flow, size = [1, 1, 2], [1500, 1500, 200]
    >>> enqueued, dequeued = [0, 0, 0], [0, 1_000_000, 2_000_000]
    >>> sketch.observe(flow, size, enqueued, dequeued).to_list()
    [0, 1500, 0]
    """

    __slots__ = ("_raw",)

    def __init__(
        self,
        *,
        longest: TimeArg | None = None,
        memory: SizeArg | None = None,
        window: TimeArg | None = None,
        columns: int | None = None,
        snapshots: int | None = None,
        rows: int | None = None,
        expiry: Literal["tag", "clean", "clean-plain"] | None = None,
        seed: int | None = None,
    ) -> None:
        arguments = given(
            longest=longest, memory=memory, window=window, columns=columns, snapshots=snapshots, rows=rows, expiry=expiry, seed=seed
        )
        self._raw = _queuescope.RawConQuest(arguments)

    def record(self, flow: NumbersArg, size: NumbersArg, dequeued: NumbersArg) -> None:
        """Add packets, in order of their departures.

        Parameters
        ----------
        flow
            A number for each flow below 2**64, such as a hash.
        size
            The weights: bytes, or 1 to count packets.
        dequeued
            When the packets left, in nanoseconds.
        """
        self._raw.record(flow, size, dequeued)

    def estimate(self, flow: NumbersArg, enqueued: NumbersArg, dequeued: NumbersArg, *, estimator: Estimator = "overlap") -> Column:
        """Estimate for each packet how much of its flow left between `enqueued` and `dequeued` (nanoseconds)."""
        return Column(self._raw.estimate(flow, enqueued, dequeued, estimator))

    def observe(
        self, flow: NumbersArg, size: NumbersArg, enqueued: NumbersArg, dequeued: NumbersArg, *, estimator: Estimator = "overlap"
    ) -> Column:
        """Do both for one packet after another, as a switch does: :meth:`estimate`, which leaves out the packet itself, then :meth:`record`."""
        return Column(self._raw.observe(flow, size, enqueued, dequeued, estimator))

    @property
    def snapshots(self) -> int:
        """The number of snapshots (h)."""
        return self._raw.dimensions[0]

    @property
    def rows(self) -> int:
        """The rows of each snapshot (R)."""
        return self._raw.dimensions[1]

    @property
    def columns(self) -> int:
        """The columns of each snapshot (C)."""
        return self._raw.dimensions[2]

    @property
    def window_ns(self) -> int:
        """The time window of a snapshot (T), in nanoseconds."""
        return self._raw.dimensions[3]

    @property
    def memory_bytes(self) -> int:
        """The memory."""
        return self._raw.dimensions[4]

    @property
    def error_bound(self) -> tuple[float, float]:
        """``(epsilon, delta)``: with a probability of at most `delta`, an estimate is too high by more than `epsilon` of all windows."""
        return self._raw.error_bound

    def __repr__(self) -> str:
        return f"<ConQuest: {self.snapshots} snapshots of {self.rows} x {self.columns}, {self.window_ns} ns each>"


class CountMin:
    """A Count-Min Sketch: weights of keys, never too low.

    Parameters
    ----------
    rows, columns
        The dimensions: 1 to 8 rows.
    seed
        Chooses the hash functions.

    Examples
    --------
    >>> import queuescope as qs
    >>> sketch = qs.CountMin(rows=2, columns=1024)
    >>> sketch.add([7, 8, 7], [100, 50, 100])
    >>> sketch.estimate([7, 8, 9]).to_list()
    [200, 50, 0]
    """

    __slots__ = ("_raw",)

    def __init__(self, *, rows: int = 2, columns: int = 2048, seed: int = 0) -> None:
        self._raw = _queuescope.RawCountMin(rows, columns, seed)

    def add(self, key: NumbersArg, weight: NumbersArg) -> None:
        """Add weights to keys. A counter stays at 2**32 - 1 when it gets there."""
        self._raw.add(key, weight)

    def estimate(self, key: NumbersArg) -> Column:
        """The weight of each key."""
        return Column(self._raw.estimate(key))


class Passed(NamedTuple):
    """The flows that passed in an interval, largest first."""

    #: The flows.
    flow: Column
    #: Their estimated bytes.
    bytes: Column
    #: All bytes in the interval, also of flows that are not listed.
    total: int


class TimeWindows:
    """Time windows that become coarser with age: which flows passed in any interval of the past, in fixed memory.

    Parameters
    ----------
    cell
        The shortest window (seconds).
    flows
        The flows that a window keeps.
    windows
        The windows of each level.
    levels
        The levels, each of which has windows of twice the length.
    seed
        Of the random choice of flows that are kept.

    Examples
    --------
    >>> import queuescope as qs
    >>> history = qs.TimeWindows()
    >>> history.record(flow=[1, 2], size=[1500, 500], at=[0, 1_000_000])
    >>> passed = history.passed(0, 2_000_000)
    >>> passed.flow.to_list(), passed.total
    ([1, 2], 2000)
    """

    __slots__ = ("_raw",)

    def __init__(
        self,
        *,
        cell: TimeArg | None = None,
        flows: int | None = None,
        windows: int | None = None,
        levels: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._raw = _queuescope.RawWindows(given(cell=cell, flows=flows, windows=windows, levels=levels, seed=seed))

    def record(self, flow: NumbersArg, size: NumbersArg, at: NumbersArg) -> None:
        """Add packets, in order of time: numbers of flows below 2**32, bytes, nanoseconds."""
        self._raw.record(flow, size, at)

    def passed(self, start_ns: int, end_ns: int) -> Passed:
        """The flows that passed from `start_ns` up to, but without, `end_ns`."""
        flow, size, total = self._raw.passed(start_ns, end_ns)
        return Passed(Column(flow), Column(size), total)

    @property
    def since_ns(self) -> int:
        """How far back the history reaches, in nanoseconds."""
        return self._raw.reach[0]

    @property
    def memory_bytes(self) -> int:
        """The memory."""
        return self._raw.reach[1]
