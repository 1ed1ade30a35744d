"""Processes that build OpenCL C beside this one, for drivers that build one text after the other in each process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from morefit.targets.builders import Builders, spare_cores

if TYPE_CHECKING:
    from morefit.targets.opencl.discover import DeviceInfo

MODULE = "morefit.targets.opencl.builder"
# what NVIDIA's driver builds in one process has the machine code of another: found in the cache that it has on disk
SERIAL = frozenset({"NVIDIA CUDA"})
MOST = 3  # processes: contexts are made one after the other, and a model has four texts or so
MEMORY = 1 << 32  # of a device, in bytes, for each of them: a context takes half a gigabyte


def builders_for(info: DeviceInfo, driver_version: str, count: int | None = None) -> Builders:
    """Return the processes that build for a device, which start when they are asked to."""
    count = helpful(info) if count is None else count
    library = opencl_library() if count else None
    arguments = library or "", info.name, driver_version.strip(), str(info.device)
    return Builders(MODULE, arguments, count=count if library else 0)


def helpful(info: DeviceInfo) -> int:
    """Return how many processes build sooner than this one alone."""
    return min(MOST, spare_cores(), info.memory // MEMORY) if info.platform_name in SERIAL else 0


def opencl_library() -> str | None:
    """Return the library of OpenCL that this process uses; pyopencl may have brought its own."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            *_, path = line.split(maxsplit=5)
            if Path(path).name.startswith("libOpenCL"):
                return path
    return None
