"""``morefit devices``: list the devices that fits can run on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

import morefit as mf
from morefit.cli.files import check_targets, write_json
from morefit.cli.options import VALID, Command, add_output
from morefit.cli.printing import MINOR, open_console, say, show_tables
from morefit.errors import BackendError
from morefit.resources import available_cores
from morefit.targets.cache import cache_state
from morefit.targets.cpu.compile import host
from morefit.targets.opencl.discover import DeviceInfo
from morefit.text.tables import Column

FORMAT, VERSION = "morefit devices", 1


def add_options(parser: ArgumentParser) -> None:
    add_output(parser, json="the list")


def run(options: Namespace) -> int:
    """List the CPU and what speaks OpenCL; a machine without any is no error."""
    check_targets(options)
    console = open_console(options)
    try:
        devices, missing = mf.devices(), ""
    except BackendError as error:
        devices, missing = (), str(error)
    show_tables(console, table(devices))
    if not devices:
        say(console, missing or "backend 'opencl': no platform found; install the driver of your GPU", MINOR)
    say(console, cache_state(), MINOR)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "cpu": processor(),
        "opencl": tuple(map(asdict, devices)),
    }
    write_json(content | ({"missing": missing} if missing else {}), options, console)
    return VALID


def processor() -> dict[str, Any]:
    """Describe the CPU as morefit uses it."""
    return {"name": host().cpu, "cores": available_cores(), "doubles in a vector": host().width}


def table(devices: tuple[DeviceInfo, ...]) -> list[Column]:
    """Return one row for the CPU and for each device; the first column is what --backend takes."""
    cpu, picked = processor(), any(device.auto for device in devices)
    rows = [
        (
            "cpu", cpu["name"], "CPU", f"{cpu['cores']} cores, vectors of {cpu['doubles in a vector']} doubles",
            "small work" if picked else "always",
        ),
        *map(row, devices),
    ]  # fmt: skip
    headings = ("--backend", "device", "kind", "details", "auto takes it for")
    return [
        Column(h, cells, numeric=False) for h, cells in zip(headings, zip(*rows, strict=True), strict=True)
    ]


def row(device: DeviceInfo) -> tuple[str, ...]:
    digits = "double precision" if device.double else "NO double precision"
    return (
        f"opencl:{device.platform}:{device.device}", f"{device.name} ({device.platform_name})", device.kind,
        f"{device.memory / 2**30:.1f} GB, {digits}", "large work" if device.auto else "",
    )  # fmt: skip


DEVICES = Command(
    "devices",
    "list the processors and accelerators that fits can run on",
    """
morefit devices
morefit devices --json -
""",
    add_options,
    run,
)
