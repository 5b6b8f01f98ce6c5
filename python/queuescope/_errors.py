"""The exceptions of the package."""

from __future__ import annotations


class QueuescopeError(Exception):
    """The base of all exceptions of this package."""


class InvalidValueError(QueuescopeError, ValueError):
    """An argument has a wrong value. The message names the argument and the values that it may have."""


class ExpressionError(InvalidValueError):
    """A text in one of queuescope's languages is wrong: an expression, a discipline with its parameters, a scenario.

    The message shows the text, with a mark under the mistake.
    """


class InputError(QueuescopeError, OSError):
    """An input cannot be read, or an output cannot be written. The message names the file, the place in it and the reason."""


class MissingFileError(InputError, FileNotFoundError):
    """A file or folder does not exist."""


class EngineError(QueuescopeError, RuntimeError):
    """The engine failed, which is a defect of queuescope, or of a discipline or congestion control that it called."""
