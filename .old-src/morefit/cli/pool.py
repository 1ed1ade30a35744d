"""Processes that work on toys, each with the user's model files loaded."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from morefit.cli.model_file import load_module


@contextmanager
def processes(count: int | None, files: tuple[Path, ...]) -> Iterator[Executor | None]:
    """Give an executor of so many processes, or None if none are asked for.

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
    """Get a worker ready: it knows the classes of the model files, and leaves Ctrl-C to the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for file in files:
        load_module(file)
