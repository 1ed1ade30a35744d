"""Processes that build texts beside this one, for compilers that build one text after the other in each process."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path

from morefit.resources import available_cores
from morefit.targets.ahead import is_ahead
from morefit.targets.build_process import READY, read_piece, write_piece

SOURCES = str(Path(__file__).parents[2])
# the interpreter starts without what it finds in the environment or in the place of packages
START = """\
import sys
from importlib import import_module
places, module = sys.argv.pop(1), sys.argv.pop(1)
sys.path[:0] = places.split({separator!r})
import_module(module).main()
"""
# where launchers of MPI and Slurm say how many processes they started
NUMBERS_OF_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
TRY_AGAIN = 0.02  # seconds after which those that begin are looked at again


class Helper:
    """A process that builds texts; it ends when nothing has been asked for, or when this process does.

    It runs ``main`` of a module; ``places`` are folders of packages that this imports.
    """

    def __init__(self, module: str, arguments: Sequence[str], places: Sequence[str] = ()) -> None:
        import subprocess  # not needed where nothing is compiled

        places = os.pathsep.join([SOURCES, *places])
        code = START.format(separator=os.pathsep)
        command = [sys.executable, "-I", "-S", "-c", code, places, module, *arguments]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)
        self.ready = False

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def is_ready(self) -> bool:
        """Return whether it has begun to wait for texts."""
        assert self.process.stdout
        if not self.ready and not self.ended and select.select([self.process.stdout], [], [], 0.0)[0]:
            with suppress(EOFError):  # it has ended: it lacks a package or a device
                self.ready = read_piece(self.process.stdout) == READY
        return self.ready and not self.ended

    def build(self, source: str) -> bytes | None:
        """Return what a text became; None if it cannot be built, or not by this process."""
        assert self.process.stdin and self.process.stdout
        try:
            write_piece(self.process.stdin, source.encode())
            return read_piece(self.process.stdout)
        except (OSError, EOFError):
            self.end()
            return None
        except BaseException:  # interrupted: what it writes next belongs to nobody
            self.end()
            raise

    def end(self) -> None:
        with suppress(OSError):
            self.process.kill()

    def close(self) -> None:
        """Close the pipes of a process that has ended, or is about to."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with suppress(OSError):  # what was not read by it
                    pipe.close()


class Builders:
    """Up to ``count`` processes of one kind, and this process, which builds one text at a time if there are others.

    While nobody waits, no more than ``at_once`` texts are built, so that Python, which writes the next one, has a core.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        count: int,
        places: Sequence[str] = (),
        at_once: float = inf,
    ) -> None:
        self.module, self.arguments, self.places = module, arguments, places
        self.count, self.at_once = count, at_once
        self.helpers: list[Helper] = []
        self.idle: list[Helper] = []
        self.builds_itself = False
        self.waiting = 0  # threads, for texts that others build
        self.changed = threading.Condition()

    def start(self, wanted: int | None = None) -> None:
        """Begin to start processes, which takes about as long as to write a text, until so many (None: all) have no text."""
        with self.changed:
            self.forget_ended()
            missing = self.count if wanted is None else wanted - len(self.idle)
            with suppress(OSError):  # no more processes, or none at all
                for _ in range(min(missing, self.count - len(self.helpers))):
                    self.helpers.append(Helper(self.module, self.arguments, self.places))
                    self.idle.append(self.helpers[-1])

    def forget_ended(self) -> None:
        for one in [one for one in self.idle if one.ended]:
            one.close()
            self.idle.remove(one)
        self.helpers = [one for one in self.helpers if not one.ended]

    def end(self) -> None:
        """End all processes that do not build."""
        with self.changed:
            for one in self.idle:
                one.end()
                one.close()
                one.process.wait()
            self.idle.clear()
            self.forget_ended()

    @contextmanager
    def turn(self) -> Iterator[Helper | None]:
        """Wait for a process that is free; None is this one."""
        helper = self.take()
        try:
            yield helper
        finally:
            with self.changed:
                if helper is None:
                    self.builds_itself = False
                else:
                    self.idle.append(helper)
                self.changed.notify_all()

    def take(self) -> Helper | None:
        with self.changed:
            while True:
                self.forget_ended()
                if not (is_ahead() and self.building >= self.at_once + self.waiting):
                    helper = next((one for one in self.idle if one.is_ready()), None)
                    if helper:
                        self.idle.remove(helper)
                        return helper
                    if not (self.helpers and self.builds_itself):
                        self.builds_itself = True
                        return None
                self.changed.wait(TRY_AGAIN)

    @property
    def building(self) -> int:
        """How many texts are being built."""
        return len(self.helpers) - len(self.idle) + self.builds_itself

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Build one text more while a thread waits for what others build, unless that is ahead of those who need it."""
        more = int(not is_ahead())
        self.count_waiting(more)
        try:
            yield
        finally:
            self.count_waiting(-more)

    def count_waiting(self, more: int) -> None:
        with self.changed:
            self.waiting += more
            self.changed.notify_all()


def spare_cores() -> int:
    """Return how many processes may build beside this one: none in one of several workers, which are many already."""
    multiprocessing = sys.modules.get("multiprocessing")
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    is_worker |= any(os.environ.get(name, "1") != "1" for name in NUMBERS_OF_RANKS)
    # a program that has Python in it would be started once more
    is_python = Path(sys.executable or "").name.startswith("python")
    if sys.platform != "linux" or not is_python or is_worker:
        return 0
    return available_cores() - 1
