"""PoCL 3.0, the newest with wheels, on processors that are newer than its LLVM: it calls them "generic", for which it compiles nothing.

The name stands once in its description of a device, and is replaced there by one that it knows. Nothing else of a test depends on it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

UNKNOWN, KNOWN = b"generic\0", b"znver3\0\0"  # of one size: written where the other stood
SEARCHED = 0x500  # bytes of the description of a device


@cache
def name_processor() -> bool:
    """Name an older processor to PoCL in this process where it knows none, and return whether that was so."""
    try:
        import pyopencl as cl

        platforms = cl.get_platforms()
    except Exception:  # no package or no platform: tests of devices say so
        return False
    unknown = False
    for device in (d for p in platforms if p.name == "Portable Computing Language" for d in p.get_devices()):
        for place in range(device.int_ptr, device.int_ptr + SEARCHED, 8):
            name = int.from_bytes(memory(place, 8), "little")
            if memory(name, len(UNKNOWN)) == UNKNOWN:
                ctypes.memmove(name, KNOWN, len(KNOWN))
                unknown = True
    return unknown


def memory(address: int, size: int) -> bytes:
    """Read memory of this process; nothing where it has none."""
    with suppress(OSError, OverflowError), open("/proc/self/mem", "rb", buffering=0) as own:
        own.seek(address)
        return own.read(size)
    return b""
