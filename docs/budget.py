"""Print how large the rooms are, their files and their longest functions: ``python docs/budget.py``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from make_map import SOURCE, modules

LONG_FUNCTION = 60  # lines
LONG_FILE = 350


@dataclass(frozen=True)
class Function:
    """A function or method, and how many lines it takes."""

    file: str
    name: str
    lines: int


@dataclass(frozen=True)
class File:
    """A module: where it lies, how many lines it has, and its functions."""

    name: str
    lines: int
    functions: tuple[Function, ...]

    @property
    def room(self) -> str:
        """Return the folder directly below the package; "." holds the modules that have none."""
        room, slash, _ = self.name.partition("/")
        return room if slash else "."


def main() -> None:
    files = [read(path) for path in modules()]
    rooms = {room: [file for file in files if file.room == room] for room in sorted({f.room for f in files})}
    print(f"{'room':<12} {'files':>6} {'lines':>7}  longest function")
    for room, inside in [*sorted(rooms.items(), key=lambda item: -total(item[1])), ("all", files)]:
        print(f"{room:<12} {len(inside):6} {total(inside):7}  {longest(inside)}")
    functions = [(one.lines, f"{one.file} {one.name}") for file in files for one in file.functions]
    show("functions", LONG_FUNCTION, functions)
    show("files", LONG_FILE, [(file.lines, file.name) for file in files])


def read(path: Path) -> File:
    """Return the sizes of a module."""
    name, text = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")
    functions = [
        Function(name, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return File(name, len(text.splitlines()), tuple(functions))


def total(files: list[File]) -> int:
    return sum(file.lines for file in files)


def longest(files: list[File]) -> str:
    """Return the longest function of some files, with its lines."""
    functions = [one for file in files for one in file.functions]
    if not functions:
        return "-"
    most = max(functions, key=lambda one: one.lines)
    return f"{most.lines:3}  {most.file} {most.name}"


def show(what: str, limit: int, sizes: list[tuple[int, str]]) -> None:
    """Print what has more lines than the limit, the longest first."""
    long = sorted((lines, name) for lines, name in sizes if lines > limit)
    print(f"\n{what} over {limit} lines: {len(long)}")
    for lines, name in reversed(long):
        print(f"{lines:7}  {name}")


if __name__ == "__main__":
    main()
