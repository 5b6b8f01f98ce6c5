"""Types of arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

#: A file or folder.
PathArg: TypeAlias = str | os.PathLike[str]
#: A rate such as ``"20mbps"``, or a number of bits per second.
RateArg: TypeAlias = str | int | float
#: A time such as ``"50ms"``, a number of seconds, or a timedelta.
TimeArg: TypeAlias = str | int | float | timedelta
#: A size such as ``"64KiB"``, or a number of bytes.
SizeArg: TypeAlias = str | int | float
#: A limit of a queue: ``"1s"``, ``"100 packets"``, ``"64kB"``, ``"none"``, or a number of bytes.
LimitArg: TypeAlias = str | int | float
#: A share such as ``"1%"``, or a number from 0 to 1.
ShareArg: TypeAlias = str | float
#: Names: text with commas, or a sequence.
NamesArg: TypeAlias = str | Sequence[str]
#: The columns of a table of departures: ``{"size": "bytes", "flow": ["src", "dst"]}``, or ``"size=bytes,flow=src+dst"``.
ColumnsArg: TypeAlias = str | Mapping[str, str | Sequence[str]]
