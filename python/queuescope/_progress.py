"""Progress of long calls."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

#: ``True`` for a progress bar of tqdm, if that is installed; or a function that is called with two numbers: the bytes or steps that are
#: done, and the packets so far.
Progress: TypeAlias = bool | Callable[[int, int], object] | None


@contextlib.contextmanager
def shown(progress: Progress, total: int | None, unit: str) -> Iterator[Callable[[int, int], object] | None]:
    """A function that the engine calls about 20 times a second, or ``None``."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        yield progress
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    bar: Any
    with tqdm(total=total, unit=unit, unit_scale=True, leave=False) as bar:

        def update(done: int, packets: int) -> None:
            bar.set_postfix(packets=packets, refresh=False)
            bar.update(done - bar.n)

        yield update


def size(path: str | os.PathLike[str]) -> int | None:
    """The size of a file, if it is known."""
    try:
        return os.path.getsize(path) or None
    except OSError:
        return None
