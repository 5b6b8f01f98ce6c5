"""Disciplines that are stepped: packets in, packets out, at times of the caller."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from . import _queuescope
from ._analyze import given
from ._errors import InvalidValueError
from ._queuescope import Departure
from ._scenario import _value
from ._types import LimitArg, RateArg


class Event(NamedTuple):
    """What happened to a packet, other than that it left."""

    #: ``dropped`` or ``marked``.
    kind: str
    #: Why, such as ``overlimit``, ``early`` or ``target``.
    reason: str
    #: The number of the packet, as :meth:`Queue.enqueue` returned it.
    packet: int
    #: The ECN codepoint of the packet afterwards.
    ecn: str


class Queue:
    """A queue whose discipline is stepped from Python.

    Parameters
    ----------
    discipline
        The discipline in the command's notation: ``"pie"``, ``"codel,target=10ms"``.
    rate
        The rate of the link, such as ``"20mbps"``, or in bits per second.
    limit
        The limit of the queue: a size (or a number of bytes), ``"100 packets"``, a time, or ``"none"``. The default is ``"1s"``.
    seed
        The seed of all randomness in the discipline.
    **parameters
        Parameters of the discipline, as in scenarios: ``target="10ms"``.

    Examples
    --------
    >>> import queuescope as qs
    >>> queue = qs.Queue("codel", rate="10mbps", target="5ms")
    >>> for n in range(3):
    ...     _ = queue.enqueue(1500, at=n * 1e-3)
    >>> departure = queue.dequeue(at=4e-3)
    >>> departure.packet.id, departure.delay_ns
    (0, 4000000)
    >>> queue.packets, queue.bytes
    (2, 3000)
    """

    __slots__ = ("_events", "_raw")

    def __init__(
        self,
        discipline: str,
        *,
        rate: RateArg,
        limit: LimitArg | None = None,
        seed: int | None = None,
        **parameters: Any,
    ) -> None:
        text = ",".join([discipline, *(f"{name.replace('_', '-')}={_text(name, value)}" for name, value in parameters.items())])
        self._raw = _queuescope.RawQueue(text, given(rate=rate, limit=limit, seed=seed))
        self._events: list[Event] = []

    def enqueue(
        self, size: int, *, at: float | None = None, at_ns: int | None = None, flow: int = 0, traffic_class: int = 0, ecn: str = "not-ect"
    ) -> int:
        """A packet arrives.

        Parameters
        ----------
        size
            Its size in bytes.
        at, at_ns
            The time: in seconds, or in nanoseconds. It may not go back.
        flow
            The number of its flow, below 2**32.
        traffic_class
            Its class of service.
        ecn
            ``not-ect``, ``ect0``, ``ect1`` or ``ce``.

        Returns
        -------
        int
            The number of the packet, counted from 0. :attr:`events` says whether it was dropped.
        """
        packet, events = self._raw.enqueue(size, _time(at, at_ns), flow, traffic_class, ecn)
        self._events.extend(Event(*event) for event in events)
        return packet

    def dequeue(self, *, at: float | None = None, at_ns: int | None = None) -> Departure | None:
        """The link is ready. Returns the packet that leaves, or ``None``."""
        departure, events = self._raw.dequeue(_time(at, at_ns))
        self._events.extend(Event(*event) for event in events)
        return departure

    @property
    def name(self) -> str:
        """The name of the discipline."""
        return self._raw.name

    @property
    def packets(self) -> int:
        """Packets in the queue."""
        return self._raw.backlog[0]

    @property
    def bytes(self) -> int:
        """Bytes in the queue."""
        return self._raw.backlog[1]

    @property
    def drop_probability(self) -> float | None:
        """The current probability of a drop or mark, if the discipline has one."""
        return self._raw.drop_probability

    @property
    def counters(self) -> dict[str, int]:
        """The discipline's own counters."""
        return dict(self._raw.counters)

    @property
    def next_timer_ns(self) -> int | None:
        """When the discipline next does something by itself. Timers fire when time passes them in a call."""
        return self._raw.next_timer

    @property
    def events(self) -> list[Event]:
        """Drops and marks so far."""
        return list(self._events)

    def __len__(self) -> int:
        return self.packets

    def __repr__(self) -> str:
        return f"<Queue {self.name}: {self.packets} packets, {self.bytes} bytes>"


def _time(seconds: float | None, nanoseconds: int | None) -> int:
    if (seconds is None) == (nanoseconds is None):
        raise InvalidValueError("give the time as at= in seconds, or as at_ns= in nanoseconds")
    time = round(seconds * 1e9) if seconds is not None else nanoseconds
    if time is None or time < 0:
        raise InvalidValueError(f"the time is {time} ns: it must not be negative")
    return time


def _text(name: str, value: Any) -> str:
    return value if isinstance(value, str) else _value(value, name)


class _Named(Queue):
    """A queue whose class names its discipline."""

    __slots__ = ()
    _discipline: ClassVar[str]

    def __init__(self, *, rate: RateArg, limit: LimitArg | None = None, seed: int | None = None, **parameters: Any) -> None:
        super().__init__(self._discipline, rate=rate, limit=limit, seed=seed, **parameters)


class TailDrop(_Named):
    """First in, first out, and what does not fit is dropped. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "tail-drop"


class RED(_Named):
    """Random early detection, also adaptive. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "red"


class CoDel(_Named):
    """CoDel (RFC 8289): the wait is kept near a target. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "codel"


class FqCoDel(_Named):
    """FQ-CoDel (RFC 8290): fair among flows, each under CoDel. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "fq-codel"


class EcnSharp(_Named):
    """ECN#: marks bursts at once, and a standing queue now and then. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "ecn-sharp"


class PIE(_Named):
    """PIE (RFC 8033): early drops by a controller on the delay. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "pie"


class PI2(_Named):
    """PI2: as PIE, with its output squared. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "pi2"


class DualPI2(_Named):
    """DualPI2 (RFC 9332): a queue for L4S and one for the rest, coupled. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "dual-pi2"


class MultiQueue(_Named):
    """A queue for each class of service. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "multi-queue"


class HashQueues(_Named):
    """A queue for each hash of the flow, served round robin. The arguments are those of :class:`Queue`, without the first."""

    __slots__ = ()
    _discipline = "hash-queues"
