"""Processes that build texts beside this one, for drivers that build one text after the other in each process."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from morefit.resources import available_cores
from morefit.targets.opencl import builder
from morefit.targets.opencl.builder import READY, read_piece, write_piece

if TYPE_CHECKING:
    from morefit.targets.opencl.discover import DeviceInfo

# what NVIDIA's driver builds in one process has the machine code of another: found in the cache that it has on disk
SERIAL = frozenset({"NVIDIA CUDA"})
MOST = 3  # processes: contexts are made one after the other, and a model has four texts or so
MEMORY = 1 << 32  # of a device, in bytes, for each of them: a context takes half a gigabyte
TRY_AGAIN = 0.02  # seconds after which those that begin are looked at again


class Helper:
    """A process that builds texts; it ends when nothing has been asked for, or when this process does."""

    def __init__(self, library: str, info: DeviceInfo, version: str) -> None:
        script = [sys.executable, "-I", "-S", builder.__file__]
        command = [*script, library, info.name, version, str(info.device)]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)
        self.ready = False
        # so that it does not stay in the list of processes when it has ended
        threading.Thread(target=self.process.wait, daemon=True).start()

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def is_ready(self) -> bool:
        """Return whether its context is there."""
        assert self.process.stdout
        if not self.ready and not self.ended and select.select([self.process.stdout], [], [], 0.0)[0]:
            with suppress(EOFError):  # it has ended: it cannot open the device, or finds another one
                self.ready = read_piece(self.process.stdout) == READY
        return self.ready and not self.ended

    def build(self, source: str) -> bytes | None:
        """Return the binary of a text; None if it cannot be built, or not by this process."""
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
    """The processes that build for one device, and this process, which builds one text at a time if there are others."""

    def __init__(self, info: DeviceInfo, driver_version: str, count: int | None = None) -> None:
        self.info, self.version = info, driver_version.strip()
        self.count = helpful(info) if count is None else count
        self.helpers: list[Helper] = []
        self.idle: list[Helper] = []
        self.builds_itself = False
        self.changed = threading.Condition()

    def start(self) -> None:
        """Begin to start processes: they take as long as a model takes to be written as text."""
        with self.changed:
            self.forget_ended()
            if len(self.helpers) < self.count and (library := opencl_library()):
                with suppress(OSError):  # no more processes, or none at all
                    for _ in range(self.count - len(self.helpers)):
                        self.helpers.append(Helper(library, self.info, self.version))
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
                helper = next((one for one in self.idle if one.is_ready()), None)
                if helper:
                    self.idle.remove(helper)
                    return helper
                if not (self.helpers and self.builds_itself):
                    self.builds_itself = True
                    return None
                self.changed.wait(TRY_AGAIN)


def helpful(info: DeviceInfo) -> int:
    """Return how many processes build sooner than this one alone: none in one of several workers, which are many already."""
    multiprocessing = sys.modules.get("multiprocessing")
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    # a program that has Python in it would be started once more
    is_python = Path(sys.executable or "").name.startswith("python")
    if info.platform_name not in SERIAL or sys.platform != "linux" or not is_python or is_worker:
        return 0
    return min(MOST, available_cores() - 1, info.memory // MEMORY)


def opencl_library() -> str | None:
    """Return the library of OpenCL that this process uses; pyopencl may have brought its own."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            *_, path = line.split(maxsplit=5)
            if Path(path).name.startswith("libOpenCL"):
                return path
    return None
