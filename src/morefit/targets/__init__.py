"""From a kernel to numbers, on one kind of device each."""

from typing import TYPE_CHECKING

from morefit.targets.base import (
    Backend,
    Buffer,
    CountsPart,
    Drawn,
    Events,
    Launch,
    PartBatch,
    Program,
    ToyBatch,
    WholeFit,
    WholeIntegral,
    WholePart,
)  # fmt: skip
from morefit.targets.choose import choose_backend

if TYPE_CHECKING:
    from morefit.targets.cpu.run import Cpu
    from morefit.targets.opencl.discover import DeviceInfo, devices
    from morefit.targets.opencl.run import OpenCL
    from morefit.targets.reference.run import Reference
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit.targets.cpu.run": ["Cpu"],
            "morefit.targets.opencl.discover": ["DeviceInfo", "devices"],
            "morefit.targets.opencl.run": ["OpenCL"],
            "morefit.targets.reference.run": ["Reference"],
        },
    )

__all__ = [
    "Backend",
    "Buffer",
    "CountsPart",
    "Cpu",
    "DeviceInfo",
    "Drawn",
    "Events",
    "Launch",
    "OpenCL",
    "PartBatch",
    "Program",
    "Reference",
    "ToyBatch",
    "WholeFit",
    "WholeIntegral",
    "WholePart",
    "choose_backend",
    "devices",
]  # fmt: skip
