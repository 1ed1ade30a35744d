"""What a process that builds texts for another one does: it reads them from its standard input, and writes what it built.

It is there in less than a tenth of a second because it imports neither NumPy nor what users import.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import IO

PATIENCE = 10.0  # seconds without a text, after which it ends: what builds takes memory
SIZE = 8  # bytes of a number that says how many follow
READY = b"ready"  # what it writes first
FAILED = (1 << 8 * SIZE) - 1  # in the place of a size

Build = Callable[[bytes], bytes | None]  # None: the text cannot be built


def write_piece(pipe: IO[bytes], piece: bytes | None) -> None:
    """Write how many bytes follow, and the bytes; None: that something failed."""
    size = FAILED if piece is None else len(piece)
    pipe.write(size.to_bytes(SIZE, "little") + (piece or b""))
    pipe.flush()


def read_piece(pipe: IO[bytes]) -> bytes | None:
    """Read what ``write_piece`` wrote; None if that was None; an error if the other side has ended."""
    size = int.from_bytes(read_exactly(pipe, SIZE), "little")
    return None if size == FAILED else read_exactly(pipe, size)


def read_exactly(pipe: IO[bytes], size: int) -> bytes:
    piece = pipe.read(size)
    if len(piece) < size:
        raise EOFError
    return piece


def serve(begin: Callable[[], Build], first: bytes | None = None) -> None:
    """Build until nothing more is asked for, and end the process; ``first`` is built when no one waits yet."""
    with suppress(EOFError):
        build_all(begin, first)
    os._exit(0)  # without what drivers do at the end, which takes as long as to begin


def build_all(begin: Callable[[], Build], first: bytes | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides what an interrupt means
    texts = os.fdopen(os.dup(0), "rb")
    built = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # drivers may print
    build = begin()
    write_piece(built, READY)
    if first is not None:
        build(first)
    while select.select([texts], [], [], PATIENCE)[0]:  # one text at a time: none is in the buffer
        text = read_piece(texts)
        assert text is not None
        write_piece(built, build(text))
