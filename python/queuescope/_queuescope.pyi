"""The engine. Use the package `queuescope`: this module may change at any time."""

from collections.abc import Callable
from typing import Any, final

__all__ = [
    "Ack",
    "Congestion",
    "Departure",
    "Packet",
    "RawAlerts",
    "RawAnswer",
    "RawColumn",
    "RawConQuest",
    "RawCountMin",
    "RawQueue",
    "RawReport",
    "RawSweep",
    "RawTable",
    "RawWhy",
    "RawWindows",
    "RawWriter",
    "__version__",
    "_panic",
    "analyze",
    "analyze_departures",
    "attributes",
    "check_folder",
    "discipline_names",
    "explain",
    "import_table",
    "p4_fit",
    "p4_names",
    "query",
    "record",
    "simulate",
    "sweep",
    "tap",
    "why",
]

__version__: str

_Progress = Callable[[int, int], object] | None

@final
class RawColumn:
    @property
    def name(self) -> str: ...
    @property
    def data_type(self) -> str: ...
    @property
    def null_count(self) -> int: ...
    def __len__(self) -> int: ...
    def block(self) -> tuple[int, str] | None: ...
    def value(self, index: int) -> Any: ...
    def to_list(self) -> list[Any]: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class RawTable:
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def column_types(self) -> list[str]: ...
    def column(self, index: int) -> RawColumn: ...
    def slice(self, start: int, end: int) -> RawTable: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class RawReport:
    @property
    def packets(self) -> RawTable | None: ...
    def fields(self) -> str: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def html(self) -> str: ...
    def table(self, part: str) -> RawTable: ...

@final
class RawSweep:
    @property
    def cells(self) -> RawTable: ...
    @property
    def rows(self) -> RawTable: ...
    def fields(self) -> str: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def html(self) -> str: ...

@final
class RawWhy:
    def fields(self) -> str: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def table(self) -> RawTable: ...

@final
class RawAnswer:
    @property
    def table(self) -> RawTable: ...
    @property
    def notes(self) -> RawTable: ...
    @property
    def damage(self) -> str | None: ...

@final
class RawWriter:
    def __new__(cls, folder: str, schema: str) -> RawWriter: ...
    def append(self, table: object) -> tuple[int, int]: ...
    def finish(self) -> None: ...

@final
class RawAlerts:
    def __new__(cls, folder: str, from_now: bool) -> RawAlerts: ...
    def more(self) -> tuple[str, bool]: ...

@final
class RawConQuest:
    def __new__(cls, arguments: dict[str, Any]) -> RawConQuest: ...
    def record(self, flow: object, size: object, dequeued: object) -> None: ...
    def estimate(self, flow: object, enqueued: object, dequeued: object, estimator: str) -> RawColumn: ...
    def observe(self, flow: object, size: object, enqueued: object, dequeued: object, estimator: str) -> RawColumn: ...
    @property
    def dimensions(self) -> tuple[int, int, int, int, int]: ...
    @property
    def error_bound(self) -> tuple[float, float]: ...

@final
class RawCountMin:
    def __new__(cls, rows: int, columns: int, seed: int) -> RawCountMin: ...
    def add(self, key: object, weight: object) -> None: ...
    def estimate(self, key: object) -> RawColumn: ...

@final
class RawWindows:
    def __new__(cls, arguments: dict[str, Any]) -> RawWindows: ...
    def record(self, flow: object, size: object, at: object) -> None: ...
    def passed(self, start: int, end: int) -> tuple[RawColumn, RawColumn, int]: ...
    @property
    def reach(self) -> tuple[int, int]: ...

@final
class RawQueue:
    def __new__(cls, discipline: str, arguments: dict[str, Any]) -> RawQueue: ...
    @property
    def name(self) -> str: ...
    @property
    def backlog(self) -> tuple[int, int]: ...
    @property
    def drop_probability(self) -> float | None: ...
    @property
    def counters(self) -> list[tuple[str, int]]: ...
    @property
    def next_timer(self) -> int | None: ...
    def enqueue(
        self, size: int, now: int, flow: int = 0, traffic_class: int = 0, ecn: str = "not-ect"
    ) -> tuple[int, list[tuple[str, str, int, str]]]: ...
    def dequeue(self, now: int) -> tuple[Departure | None, list[tuple[str, str, int, str]]]: ...

@final
class Packet:
    """A packet in a queue."""

    @property
    def id(self) -> int:
        """Its number, which no other packet in the queue has."""
    @property
    def size(self) -> int:
        """Its size in bytes."""
    @property
    def flow(self) -> int:
        """The number of its flow."""
    @property
    def traffic_class(self) -> int:
        """Its class of service."""
    @property
    def ecn(self) -> str:
        """`not-ect`, `ect0`, `ect1` or `ce`."""
    @property
    def arrived_ns(self) -> int:
        """When it arrived, in nanoseconds."""

@final
class Departure:
    """A packet that left a queue."""

    @property
    def packet(self) -> Packet:
        """The packet."""
    @property
    def enqueued_ns(self) -> int:
        """When it arrived, in nanoseconds."""
    @property
    def dequeued_ns(self) -> int:
        """When it left, in nanoseconds."""
    @property
    def delay_ns(self) -> int:
        """How long it waited, in nanoseconds."""
    @property
    def backlog_bytes(self) -> int:
        """Bytes in the queue when it arrived, without itself."""

@final
class Ack:
    """What an ACK means to a congestion control."""

    @property
    def acked(self) -> int:
        """Bytes acknowledged cumulatively for the first time."""
    @property
    def delivered(self) -> int:
        """Bytes delivered for the first time, cumulatively or selectively."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight after the ACK."""
    @property
    def rtt_ns(self) -> int | None:
        """The round-trip time that it measured, in nanoseconds."""
    @property
    def smoothed_rtt_ns(self) -> int:
        """The smoothed round-trip time in nanoseconds; zero before the first."""
    @property
    def phase(self) -> str:
        """`open`, `disorder`, `reduced`, `recovery` or `loss`."""
    @property
    def marked(self) -> int:
        """Bytes whose ACKs reported a mark."""
    @property
    def window_limited(self) -> bool:
        """Whether the window kept the sender from sending more."""
    @property
    def rate_bps(self) -> float | None:
        """The delivery rate in bits per second, if it could be measured."""

@final
class Congestion:
    """A congestion event."""

    @property
    def in_flight(self) -> int:
        """Bytes in flight when it was found, including the lost ones."""
    @property
    def lost(self) -> int:
        """Bytes found lost; zero if packets were marked."""
    @property
    def delivered(self) -> int:
        """Bytes that the ACK delivered that revealed it."""

def analyze(path: str, arguments: dict[str, Any], progress: _Progress = None) -> RawReport: ...
def analyze_departures(table: object, arguments: dict[str, Any], progress: _Progress = None) -> RawReport: ...
def tap(ingress: list[str], egress: str, arguments: dict[str, Any], progress: _Progress = None) -> RawReport: ...
def why(input: object, arguments: dict[str, Any], progress: _Progress = None) -> RawWhy: ...
def simulate(scenario: dict[str, Any], arguments: dict[str, Any], progress: _Progress = None) -> RawReport: ...
def sweep(scenario: dict[str, Any], arguments: dict[str, Any], progress: _Progress = None) -> RawSweep: ...
def explain(scenario: dict[str, Any]) -> str: ...
def discipline_names() -> list[str]: ...
def record(
    path: str, folder: str, arguments: dict[str, Any], progress: _Progress = None
) -> tuple[int, RawTable, str | None]: ...
def query(path: str, expression: str, arguments: dict[str, Any], progress: _Progress = None) -> RawAnswer: ...
def attributes(folder: str | None, schema: str) -> RawTable: ...
def check_folder(folder: str) -> None: ...
def p4_names() -> tuple[list[str], list[str]]: ...
def p4_fit(algorithm: str, target: str) -> str: ...
def import_table(table: object) -> RawTable: ...
def _panic() -> None: ...
