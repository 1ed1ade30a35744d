"""Every error morefit raises on purpose.

* MorefitError
    * ModelError(ValueError)      the model does not make sense
    * DataError(ValueError)       the data do not fit the model
    * OptionError(ValueError)     an option of a function has a wrong value
    * CompileError(RuntimeError)  a kernel could not be built; ``source`` is its text
    * BackendError(RuntimeError)  a backend is missing or failed
        * BrokenJob               a long job stopped early; ``finished`` holds what is done
    * FitError(RuntimeError)      a fit cannot be started
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class MorefitError(Exception):
    """Base class of every error raised on purpose."""


class ModelError(MorefitError, ValueError):
    """The model does not make sense."""


class DataError(MorefitError, ValueError):
    """The data do not fit the model."""


class OptionError(MorefitError, ValueError):
    """An option of a function has a wrong value, whatever the model and the data are."""


class CompileError(MorefitError, RuntimeError):
    """A kernel could not be built; ``source`` is the text that failed."""

    def __init__(self, message: str, source: str = "") -> None:
        super().__init__(message)
        self.source = source


class BackendError(MorefitError, RuntimeError):
    """A backend is missing or failed."""


class BrokenJob(BackendError):
    """A study, scan or bootstrap stopped early, or cannot write its file; ``finished`` is the result so far.

    It is None if nothing was finished. The error behind it is its ``__cause__``.
    """

    def __init__(self, message: str, finished: Any = None) -> None:
        super().__init__(message)
        self.finished = finished


class FitError(MorefitError, RuntimeError):
    """A fit cannot be started."""


@contextmanager
def errors_of(what: str) -> Iterator[None]:
    """Say what errors of data, models, options and fits are about, before what they say themselves."""
    try:
        yield
    except (DataError, ModelError, OptionError, FitError) as error:
        raise type(error)(f"{what}: {error}") from None
