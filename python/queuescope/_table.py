"""Tables and columns of results: Arrow arrays for any library."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

from . import _queuescope
from ._errors import InvalidValueError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Rows that ``repr`` and notebooks show.
_SHOWN = 10


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library with the Arrow PyCapsule interface: polars, pyarrow, pandas 2.2, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table as a stream of record batches."""
        ...


class Column:
    """A column of a :class:`Table`: an Arrow array.

    It is a sequence of Python's values, and an Arrow array for other libraries. Numbers without missing values are also an array for
    numpy, without a copy: ``numpy.asarray(column)``.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _queuescope.RawColumn) -> None:
        self._raw = raw

    @property
    def name(self) -> str:
        """The name of the column."""
        return self._raw.name

    @property
    def type(self) -> str:
        """The Arrow type, such as ``UInt64``."""
        return self._raw.data_type

    @property
    def null_count(self) -> int:
        """The number of missing values."""
        return self._raw.null_count

    def to_list(self) -> list[Any]:
        """All values as a list; missing values are ``None``."""
        return self._raw.to_list()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        block = self._raw.block()
        if block is None:
            raise AttributeError("__array_interface__")
        address, kind = block
        return {"version": 3, "shape": (len(self),), "typestr": kind, "data": (address, True)}

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._raw.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._raw.value(at) for at in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"the column '{self.name}' has {len(self)} values, and no value {index}")
        return self._raw.value(at)

    def __iter__(self) -> Iterator[Any]:
        return (self._raw.value(at) for at in range(len(self)))

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self[:_SHOWN])
        more = ", ..." if len(self) > _SHOWN else ""
        return f"<Column '{self.name}': {self.type}, {len(self)} values: [{shown}{more}]>"


class Table:
    """A table of results: Arrow record batches.

    Any library with the Arrow PyCapsule interface takes it over without a copy: ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
    ``duckdb.sql("select * from table")``. None of them has to be installed.

    Examples
    --------
    >>> import queuescope as qs
    >>> bursts = qs.analyze("demo.pcap.xz", rate="20mbps").bursts
    >>> bursts.column_names[:4]
    ['number', 'start_ns', 'length_ns', 'peak_delay_ns']
    >>> max(bursts["peak_delay_ns"]) / 1e6  # in milliseconds
    77.5934
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _queuescope.RawTable) -> None:
        self._raw = raw

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self._raw.column_names

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._raw.num_rows

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return len(self._raw.column_names)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return (self.num_rows, self.num_columns)

    @property
    def schema(self) -> dict[str, str]:
        """The Arrow type of each column."""
        return dict(zip(self._raw.column_names, self._raw.column_types, strict=True))

    def column(self, name: str) -> Column:
        """A column by its name; ``table["name"]`` is the same."""
        names = self._raw.column_names
        if name not in names:
            raise InvalidValueError(f"there is no column '{name}': the columns are {', '.join(names)}")
        return Column(self._raw.column(names.index(name)))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dictionary."""
        columns = [self.column(name) for name in self.column_names]
        for at in range(self.num_rows):
            yield {column.name: column[at] for column in columns}

    def head(self, rows: int = 5) -> Table:
        """The first rows, without a copy."""
        return Table(self._raw.slice(0, max(rows, 0)))

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists."""
        return {name: self.column(name).to_list() for name in self.column_names}

    def to_polars(self) -> polars.DataFrame:
        """As a ``polars.DataFrame``, for which polars must be installed."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a ``pandas.DataFrame``, for which pandas and pyarrow must be installed."""
        return self.to_pyarrow().to_pandas()

    def to_pyarrow(self) -> pyarrow.Table:
        """As a ``pyarrow.Table``, for which pyarrow must be installed."""
        import pyarrow

        return pyarrow.table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._raw.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    def __getitem__(self, name: str) -> Column:
        return self.column(name)

    def __contains__(self, name: object) -> bool:
        return name in self._raw.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw.column_names)

    def __len__(self) -> int:
        return self.num_rows

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        part = self.head(_SHOWN)
        return part.column_names, [[_cell(value) for value in row.values()] for row in part.rows()]

    def __repr__(self) -> str:
        names, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [names, *rows]]
        if self.num_rows > len(rows):
            lines.append(f"... {self.num_rows - len(rows)} more rows")
        return "\n".join(["<Table: {} rows, {} columns>".format(*self.shape), *lines])

    def _repr_html_(self) -> str:
        names, rows = self._cells()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        more = self.num_rows - len(rows)
        note = f"<p>and {more} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def table(data: ArrowStream) -> Table:
    """Take a table of another library over, without a copy.

    Parameters
    ----------
    data
        Any object with the Arrow PyCapsule interface. A stream is read to its end.

    Raises
    ------
    InvalidValueError
        If the object is not a table.
    """
    return Table(_queuescope.import_table(data))
