"""Which flows fill a queue, and what to do about them.

The engine of queuescope in Python. :func:`analyze` reports which flows filled the queue of a link that a capture passes,
:func:`simulate` does so for a scenario.

>>> import queuescope as qs
>>> report = qs.analyze("demo.pcap.xz", rate="20mbps")
>>> report.bursts.num_rows > 0
True

Results are tables (:class:`Table`) that polars, pandas, pyarrow, DuckDB and numpy take over without a copy; none of them has to be
installed. Times are integers in nanoseconds in results; as arguments they are texts such as ``"50ms"``, or numbers of seconds.
"""

from . import p4
from ._analyze import analyze
from ._errors import (
    EngineError,
    ExpressionError,
    InputError,
    InvalidValueError,
    MissingFileError,
    QueuescopeError,
)
from ._log import Answer, Log, query, record
from ._own import Ack, Congestion, CongestionControl, Departure, Discipline, Packet
from ._queue import (
    PI2,
    PIE,
    RED,
    CoDel,
    DualPI2,
    EcnSharp,
    Event,
    FqCoDel,
    HashQueues,
    MultiQueue,
    Queue,
    TailDrop,
)
from ._queuescope import __version__
from ._report import Report
from ._simulate import Simulation, Sweep, explain, simulate, sweep
from ._sketch import ConQuest, CountMin, Passed, TimeWindows
from ._table import ArrowStream, Column, Table, table
from ._tap import tap
from ._why import Why, why

__all__ = [
    "PI2",
    "PIE",
    "RED",
    "Ack",
    "Answer",
    "ArrowStream",
    "CoDel",
    "Column",
    "ConQuest",
    "Congestion",
    "CongestionControl",
    "CountMin",
    "Departure",
    "Discipline",
    "DualPI2",
    "EcnSharp",
    "EngineError",
    "Event",
    "ExpressionError",
    "FqCoDel",
    "HashQueues",
    "InputError",
    "InvalidValueError",
    "Log",
    "MissingFileError",
    "MultiQueue",
    "Packet",
    "Passed",
    "Queue",
    "QueuescopeError",
    "Report",
    "Simulation",
    "Sweep",
    "Table",
    "TailDrop",
    "TimeWindows",
    "Why",
    "__version__",
    "analyze",
    "explain",
    "p4",
    "query",
    "record",
    "simulate",
    "sweep",
    "table",
    "tap",
    "why",
]
