"""From a kernel to numbers, on one kind of device each."""

from morefit.backend.base import Array, Backend, Buffer, Drawn, Events, Launch, Program, WholeFit
from morefit.backend.choose import choose_backend
from morefit.backend.cpu import Cpu
from morefit.backend.opencl import OpenCL
from morefit.backend.opencl_found import DeviceInfo, devices
from morefit.backend.reference import Reference

__all__ = [
    "Array", "Backend", "Buffer", "Cpu", "DeviceInfo", "Drawn", "Events", "Launch", "OpenCL", "Program", "Reference", "WholeFit",
    "choose_backend", "devices",
]  # fmt: skip
