"""Which devices speak OpenCL: what there is, and which of it a user means."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from morefit.dataclass import dataclass
from morefit.errors import BackendError


def pyopencl() -> Any:
    """Import pyopencl, the first time it is needed."""
    try:
        import pyopencl as cl
        import pyopencl.tools
    except ImportError as error:
        raise BackendError(
            "backend 'opencl': pyopencl is not installed; pip install 'morefit[opencl]'"
        ) from error
    return cl


@dataclass(frozen=True)
class DeviceInfo:
    """A device as its driver describes it; ``platform`` and ``device`` choose it: OpenCL(platform, device)."""

    platform: int
    device: int
    name: str
    platform_name: str
    kind: str  # "GPU", "CPU", ...
    memory: int  # bytes
    double: bool  # whether it computes in double precision
    auto: bool = False  # whether backend="auto" uses it for large work

    def __str__(self) -> str:
        digits = "double precision" if self.double else "no double precision"
        return (
            f"{self.platform}:{self.device} {self.name} ({self.platform_name}), {self.kind},"
            f" {self.memory / 2**30:.1f} GB, {digits}{', used by auto for large work' if self.auto else ''}"
        )


def devices() -> tuple[DeviceInfo, ...]:
    """List the devices of every platform; none if there is no platform."""
    infos = [info for info, _ in all_devices()]
    picked = pick(infos)
    return tuple(replace(info, auto=info is picked) for info in infos)


def pick(infos: Sequence[DeviceInfo]) -> DeviceInfo | None:
    """Return the device that "auto" uses for large work: the first GPU with double precision."""
    return next((info for info in infos if info.kind == "GPU" and info.double), None)


def all_devices() -> list[tuple[DeviceInfo, Any]]:
    cl = pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # a loader without any driver calls it an error
        return []
    devices = []
    for p, platform in enumerate(platforms):
        with contextlib.suppress(cl.Error):  # a platform without devices
            devices += [(describe(p, d, device), device) for d, device in enumerate(platform.get_devices())]
    return devices


def describe(platform: int, number: int, device: Any) -> DeviceInfo:
    cl = pyopencl()
    kinds = {"GPU": cl.device_type.GPU, "CPU": cl.device_type.CPU, "ACCELERATOR": cl.device_type.ACCELERATOR}
    kind = next((name for name, bit in kinds.items() if device.type & bit), "OTHER")
    return DeviceInfo(
        platform=platform,
        device=number,
        name=device.name.strip(),
        platform_name=device.platform.name.strip(),
        kind=kind,
        memory=int(device.global_mem_size),
        double="cl_khr_fp64" in device.extensions.split(),
    )


PREFERRED = ("GPU", "ACCELERATOR", "CPU", "OTHER")


def choose_device(platform: int | str | None, device: int | str | None) -> tuple[DeviceInfo, Any]:
    """Find the device a user means: by number or part of its name; any with double precision, GPUs first."""
    every = all_devices()
    if not every:
        raise BackendError("backend 'opencl': no platform found; install a driver, or use backend='cpu'")

    def meant(wish: int | str | None, number: int, name: str) -> bool:
        return wish is None or (wish == number if isinstance(wish, int) else wish.lower() in name.lower())

    some = [
        pair
        for pair in every
        if meant(platform, pair[0].platform, pair[0].platform_name)
        and meant(device, pair[0].device, pair[0].name)
    ]
    if not some:
        there = "; ".join(str(info) for info, _ in every)
        raise BackendError(
            f"backend 'opencl': no device found for platform={platform!r}, device={device!r}; there are: {there}"
        )
    good = [pair for pair in some if pair[0].double]
    if not good:
        names = ", ".join(info.name for info, _ in some)
        raise BackendError(
            f"backend 'opencl': no double precision (cl_khr_fp64) on {names}; choose another device, or use"
            " backend='cpu'"
        )
    return min(good, key=lambda pair: PREFERRED.index(pair[0].kind))
