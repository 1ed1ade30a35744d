"""Long jobs of commands: processes with the user's model files loaded, and results of jobs that stopped early."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from morefit.cli.model_file import load_module
from morefit.errors import BrokenJob


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
