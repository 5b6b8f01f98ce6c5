"""Disciplines and congestion controls that are written in Python."""

from __future__ import annotations

from ._queuescope import Ack, Congestion, Departure, Packet

__all__ = ["Ack", "Congestion", "CongestionControl", "Departure", "Discipline", "Packet"]


class Discipline:
    """The base of a discipline that is written in Python, for :func:`simulate`.

    Override :meth:`enqueue` and :meth:`dequeue`. The engine calls them with the time in nanoseconds, and keeps the packets, so that it knows
    the backlog exactly. Attributes of the object are the state of the queue: set them in ``__init__``, which gets no arguments.
    :attr:`rate` and :attr:`random_seed` are known from the first packet on.

    It is slow: each packet calls Python three times.

    Examples
    --------
    Last in, first out, with a limit of 20 packets:

    >>> import queuescope as qs
    >>> class Lifo(qs.Discipline):
    ...     def __init__(self):
    ...         self.stack = []
    ...     def enqueue(self, packet, now):
    ...         if len(self.stack) == 20:
    ...             return False
    ...         self.stack.append(packet)
    ...     def dequeue(self, now):
    ...         return self.stack.pop()
    >>> network = {"duration": "1s", "flows": [{"name": "bulk", "tcp": "newreno"}]}
    >>> simulation = qs.simulate(network, disciplines={"bottleneck": Lifo})
    >>> simulation.links["discipline"][0]
    'Lifo'
    """

    #: Whether packets leave in the order in which they came. If so, set it: a report is exact then.
    fifo: bool = False
    #: The rate of the link in bits per second.
    rate: int = 0
    #: The seed of all randomness in the queue, so that a run can be repeated.
    random_seed: int = 0

    def enqueue(self, packet: Packet, now: int) -> bool | str | None:
        """A packet arrives. Return ``False`` to drop it (reason ``overlimit``), or the name of another reason, such as ``early``."""
        raise NotImplementedError(f"{type(self).__name__} must have a method enqueue(packet, now)")

    def dequeue(self, now: int) -> Packet | None:
        """The link is ready, and packets wait. Return the one that leaves; or ``None`` if none may leave before the timer or an arrival."""
        raise NotImplementedError(f"{type(self).__name__} must have a method dequeue(now)")

    def next_timer(self) -> int | None:
        """When to call :meth:`on_timer`, in nanoseconds. Asked after each call of another method, if a subclass overrides it."""
        return None

    def on_timer(self, now: int) -> None:
        """The timer fires. Set it later, or clear it."""

    def drop(self, packet: Packet, reason: str = "target") -> None:
        """Drop a packet that waits. Call it in :meth:`enqueue` or :meth:`dequeue`."""
        self._pending().append(("dropped", packet.id, reason))

    def mark(self, packet: Packet, reason: str = "threshold") -> None:
        """Mark a packet that waits: its ECN codepoint becomes CE. It must be ECN-capable. Call it as :meth:`drop`."""
        self._pending().append(("marked", packet.id, reason))

    # The engine calls these.

    def _begin(self, rate: int, seed: int) -> None:
        self.rate, self.random_seed = rate, seed

    @property
    def _has_timer(self) -> bool:
        return type(self).next_timer is not Discipline.next_timer

    def _actions(self) -> list[tuple[str, int, str]]:
        pending = self._pending()
        if not pending:
            return pending
        self.__dict__["_qs_pending"] = []
        return pending

    def _pending(self) -> list[tuple[str, int, str]]:
        pending: list[tuple[str, int, str]] = self.__dict__.setdefault("_qs_pending", [])
        return pending


class CongestionControl:
    """The base of a congestion control that is written in Python, for :func:`simulate`.

    Each connection has its own object. After each event, the sender reads :attr:`window` and :attr:`slow_start_threshold` (bytes), and
    :attr:`pacing_rate` (bits per second). Set the state in :meth:`on_start`.

    Examples
    --------
    Additive increase, multiplicative decrease:

    >>> import queuescope as qs
    >>> class Aimd(qs.CongestionControl):
    ...     def on_ack(self, ack, now):
    ...         if ack.phase == "open":
    ...             grows = self.window < self.slow_start_threshold
    ...             self.window += ack.acked if grows else self.mss * ack.acked // self.window
    ...     def on_congestion(self, congestion, now):
    ...         self.slow_start_threshold = self.window = max(self.window * 7 // 10, 2 * self.mss)
    ...     def on_timeout(self, congestion, now):
    ...         self.slow_start_threshold = max(self.window // 2, 2 * self.mss)
    ...         self.window = self.mss
    >>> network = {"duration": "1s", "flows": [{"name": "bulk", "tcp": "newreno"}]}
    >>> simulation = qs.simulate(network, controls={"bulk": Aimd})
    >>> simulation.flow_groups["goodput_bps"][0] > 1e6
    True
    """

    #: The size of a segment, in bytes.
    mss: int = 0
    #: The congestion window, in bytes. At the start of a connection it is the initial window.
    window: int = 0
    #: The slow-start threshold, in bytes.
    slow_start_threshold: int = 2**63 - 1
    #: The pacing rate in bits per second; ``None`` if the sender does not pace.
    pacing_rate: int | None = None
    #: The seed of all randomness in it.
    random_seed: int = 0

    def on_start(self) -> None:
        """The connection begins; :attr:`mss` and :attr:`window` are set."""

    def on_ack(self, ack: Ack, now: int) -> None:
        """An ACK acknowledged something. Times are in nanoseconds."""
        raise NotImplementedError(f"{type(self).__name__} must have a method on_ack(ack, now)")

    def on_congestion(self, congestion: Congestion, now: int) -> None:
        """A loss was found, or a mark was echoed, for the first time in a window of data."""
        raise NotImplementedError(f"{type(self).__name__} must have a method on_congestion(congestion, now)")

    def on_timeout(self, congestion: Congestion, now: int) -> None:
        """The retransmission timer expired: everything in flight counts as lost."""
        raise NotImplementedError(f"{type(self).__name__} must have a method on_timeout(congestion, now)")

    def on_recovered(self, now: int) -> None:
        """Everything that was in flight at the congestion event or timeout is acknowledged."""

    # The engine calls these.

    def _begin(self, mss: int, initial_window: int, seed: int) -> None:
        self.mss, self.window, self.random_seed = mss, initial_window, seed
        self.on_start()

    def _values(self) -> tuple[int, int | None, int | None]:
        pacing = self.pacing_rate
        return int(self.window), int(self.slow_start_threshold), None if pacing is None else int(pacing)
