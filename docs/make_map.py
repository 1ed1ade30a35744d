"""Write docs/map.md from the first sentence of every module: ``python docs/make_map.py``."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "morefit"
TARGET = ROOT / "docs" / "map.md"
HEAD = """\
# Map of rooms

Every module in the sentence it opens with. Rooms stand in the order of imports: each may import only from rooms
further down, and import-linter checks it. Read [pipeline.py](../src/morefit/pipeline.py) first.

This file is made by `python docs/make_map.py`; change the docstrings instead of it.
"""


def make_map() -> str:
    """Return the text of the map."""
    found = {room_of(path) for path in modules()}
    named = [room for layer in read_layers() for room in layer if room in found]
    rooms = [*sorted(found - set(named)), *named]
    return "\n".join([HEAD, *map(section, rooms)])


def read_layers() -> list[list[str]]:
    """Return the rooms of each layer, top to bottom, as import-linter is told them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    return [[room.strip().removeprefix("morefit.") for room in layer.split("|")] for layer in layers]


def modules() -> list[Path]:
    """List the modules, a folder's own one first."""
    return sorted(SOURCE.rglob("*.py"), key=lambda p: (p.parent, p.name != "__init__.py", p.name))


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return "morefit" if first == "__init__.py" else first.removesuffix(".py")


def section(room: str) -> str:
    """Return one room: a heading, what it is for, and its files."""
    paths = [path for path in modules() if room_of(path) == room]
    place = paths[0].relative_to(ROOT).as_posix().removesuffix("/__init__.py")
    lines = [f"## [{room}](../{place})", "", first_sentence(paths[0]), ""]
    if len(paths) > 1:
        lines += ["| file | purpose |", "|---|---|", *map(row, paths[1:]), ""]
    return "\n".join(lines)


def row(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    short = path.relative_to(SOURCE).as_posix().partition("/")[2]
    return f"| [{short}](../{name}) | {first_sentence(path).replace('|', chr(92) + '|')} |"


def first_sentence(path: Path) -> str:
    """Return the first paragraph of a module's docstring on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text, f"{path}: a module opens with one sentence of purpose"
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    TARGET.write_text(make_map(), encoding="utf-8")
