"""Whether an algorithm fits the pipeline of a switch."""

from __future__ import annotations

import json
from typing import Any

from . import _queuescope

__all__ = ["Fit", "algorithms", "fit", "targets"]


def algorithms() -> list[str]:
    """The names of all algorithms."""
    return _queuescope.p4_names()[0]


def targets() -> list[str]:
    """The names of all switches."""
    return _queuescope.p4_names()[1]


class Fit:
    """How an algorithm fits a switch."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    @property
    def grade(self) -> str:
        """``feasible``, ``workaround`` or ``infeasible``."""
        grade: str = self._fields["grade"]
        return grade

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The reasons for verdicts other than feasible, by aspect."""
        return {aspect["aspect"]: aspect["reasons"] for aspect in self._fields["aspects"] if aspect["reasons"]}

    @property
    def stages(self) -> int | None:
        """The stages that it takes; ``None`` if it cannot be placed."""
        stages: list[Any] | None = self._fields["stages"]
        return None if stages is None else len(stages)

    def to_dict(self) -> dict[str, Any]:
        """All fields: the verdict of each aspect, and the contents of each stage."""
        return dict(self._fields)

    def __repr__(self) -> str:
        fields = self._fields
        return f"<Fit of {fields['algorithm']} on {fields['target']}: {self.grade}, {self.stages} of {fields['target_stages']} stages>"


def fit(algorithm: str, target: str = "tofino") -> Fit:
    """Check whether an algorithm fits a switch.

    Parameters
    ----------
    algorithm
        One of :func:`algorithms`.
    target
        One of :func:`targets`.

    Examples
    --------
    >>> from queuescope import p4
    >>> p4.fit("egress-pi").grade
    'feasible'
    >>> sorted(p4.fit("pie").reasons)
    [...]
    """
    return Fit(json.loads(_queuescope.p4_fit(algorithm, target)))
