"""From a kernel to numbers, on one kind of device each."""

from morefit.targets.base import (
    Backend,
    Buffer,
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
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl.discover import DeviceInfo, devices
from morefit.targets.opencl.run import OpenCL
from morefit.targets.reference.run import Reference

__all__ = [
    "Backend",
    "Buffer",
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
