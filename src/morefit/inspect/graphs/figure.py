"""A drawing: its text for Graphviz, and files and notebooks it can be shown in."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from morefit.errors import BackendError, ModelError
from morefit.records.output import complete_file

TEXTS = (".dot", ".gv")
PICTURES = (".svg", ".png", ".pdf")
SECONDS = 60  # a graph that can be read is laid out in less than one


@dataclass(frozen=True)
class Drawing:
    """A graph as text for Graphviz; where its program ``dot`` is installed, also as a picture."""

    dot: str
    title: str
    boxes: int
    hidden: int  # nodes of the graph that no box stands for

    def save(self, path: str | PathLike[str]) -> None:
        """Write a .dot file, or with Graphviz a .svg, .png or .pdf file."""
        target = Path(path).expanduser()
        kind = target.suffix.lower()
        if kind not in (*TEXTS, *PICTURES):
            known = ", ".join((*TEXTS, *PICTURES))
            raise ModelError(
                f"drawing: the name of a file must end in {known}, got '{target.name}'; rename it"
            )
        content = self.dot.encode() if kind in TEXTS else picture(self.dot, kind[1:])
        with complete_file(target) as part:
            part.write_bytes(content)

    def __str__(self) -> str:
        return self.dot

    def __repr__(self) -> str:
        hidden = f", {self.hidden} nodes not drawn" if self.hidden else ""
        return f"Drawing: {self.title}; {self.boxes} boxes{hidden}. Print it, or save('graph.svg')"

    def _repr_svg_(self) -> str | None:
        """Return the picture for a notebook; None, where it cannot be made, leaves the text."""
        try:
            return picture(self.dot, "svg").decode()
        except BackendError:
            return None


def picture(dot: str, kind: str) -> bytes:
    """Let Graphviz draw."""
    program = shutil.which("dot")
    if program is None:
        raise BackendError(
            f"drawing: a .{kind} file is made by Graphviz, whose program 'dot' was not found; install Graphviz"
            " (graphviz.org), or save a .dot file and draw that elsewhere"
        )
    try:
        done = subprocess.run(
            [program, f"-T{kind}"], input=dot.encode(), capture_output=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"drawing: '{program}' did not draw, got {error}; save a .dot file") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[0] if lines else f"status {done.returncode}"
        raise BackendError(
            f"drawing: '{program}' did not draw a .{kind} file, got {reason}; save a .dot file"
        )
    return done.stdout
