"""Load a model from a file of Python, here and in the processes of long jobs, with errors that name the line of the file."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import signal
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from morefit.data.io.table import nearby
from morefit.dataclass import dataclass
from morefit.errors import BrokenJob, ModelError, MorefitError
from morefit.model import Pdf


@dataclass(frozen=True)
class ModelFile:
    """Where a model is: a file, and the name it has there."""

    path: Path
    name: str = "model"

    @classmethod
    def named(cls, text: str) -> ModelFile:
        """Read "MODEL.py" or "MODEL.py:NAME"."""
        place, colon, name = text.rpartition(":")
        if colon and name.isidentifier() and not Path(text).exists():
            return cls(existing(place), name)
        return cls(existing(text))

    def load(self) -> Pdf:
        """Run the file and return its model."""
        names = vars(load_module(self.path))
        others = [name for name, value in names.items() if isinstance(value, Pdf)]
        if self.name not in names:
            raise ModelError(f"model '{self.path}': defines no '{self.name}'; {remedy(self, others)}")
        model = names[self.name]
        if not isinstance(model, Pdf):
            kind = type(model).__name__
            raise ModelError(
                f"model '{self.path}': '{self.name}' must be a density (morefit.Pdf), got {kind}; {remedy(self, others)}"
            )
        return model


def load_model(text: str) -> Pdf:
    """Return the model that "MODEL.py" or "MODEL.py:NAME" stands for."""
    return ModelFile.named(text).load()


def remedy(file: ModelFile, others: list[str]) -> str:
    """Return how to name the model, if the file has any."""
    if not others:
        return f"write '{file.name} = mf.Sum(...)' or the like"
    return f"choose one there is: {', '.join(repr(f'{file.path}:{name}') for name in others)}"


def existing(text: str) -> Path:
    """Return the path of a file that is there."""
    path = Path(text).expanduser()
    if path.is_dir():
        raise ModelError(f"model '{text}': is a folder; name a file of Python in it")
    if not path.exists():
        raise ModelError(f"model '{text}': does not exist; {nearby(path)}")
    if path.suffix != ".py":  # to run data as a program would be worse than an error
        raise ModelError(
            f"model '{text}': must be a file of Python that ends in .py; MODEL.py comes before DATA"
        )
    return path


class FreshLoader(SourceFileLoader):
    """Compiles the text as it is now, and leaves no __pycache__ beside a user's file."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def load_module(path: Path) -> ModuleType:
    """Run a file as a module, which can import what lies beside it; its classes pickle in all processes that loaded it."""
    name = module_name(path)
    spec = importlib.util.spec_from_loader(name, FreshLoader(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with importable(path.absolute().parent):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ModelError(f"model '{path}'{place_of(error, path)}: {what_of(error)}") from error
    return module


def module_name(path: Path) -> str:
    """Return a name that no other module has, and that is the same in every process."""
    stem = re.sub(r"\W", "_", path.stem)
    return f"morefit_model_{stem}_{zlib.crc32(os.fsencode(path.absolute())):08x}"


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def place_of(error: BaseException, path: Path) -> str:
    """Return the line of the file at which an error was raised, or at which what raised it was called."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def what_of(error: BaseException) -> str:
    """Return what happened: the message of morefit's own errors, else the kind of error too."""
    if isinstance(error, MorefitError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    if isinstance(error, SystemExit):
        return "must not exit; end the file where the model is complete"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@contextmanager
def processes(count: int | None, files: tuple[Path, ...]) -> Iterator[Executor | None]:
    """Open an executor of ``count`` processes; None if ``count`` is None.

    They are started afresh, not forked: a fork would copy threads in the middle of their work.
    """
    if count is None:
        yield None
        return
    start_method = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=start_method, initializer=prepare, initargs=(files,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def prepare(files: tuple[Path, ...]) -> None:
    """Load the model files on a worker, and leave Ctrl-C to the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for file in files:
        load_module(file)


@contextmanager
def finished_shown(show: Callable[[Any], None]) -> Iterator[None]:
    """Show what a job had finished when it broke."""
    try:
        yield
    except BrokenJob as error:
        if error.finished is not None:
            show(error.finished)
        raise
