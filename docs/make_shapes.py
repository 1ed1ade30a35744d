"""Write docs/shapes.md from the docstrings of all densities of ``mf.shapes``: ``python docs/make_shapes.py``."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import morefit as mf
from morefit.model.arguments import declared_arguments

TARGET = Path(__file__).resolve().parent / "shapes.md"
HEAD = """\
# Shapes

All densities of `mf.shapes`: formula, arguments, an example. Numbers of an example may be parameters or formulas of
parameters. Each is normalised on the range of its observable, whatever that is; what is written here is the density up to
a factor. `help(mf.shapes.Voigt)` shows the same.

This file is made by `python docs/make_shapes.py`; change the docstrings instead of it.

```python
import morefit as mf

m = mf.Observable("m", 5.0, 7.0)
x = mf.Observable("x", 0.1, 10.0)
u = mf.Observable("u", 0.0, 1.0)
t = mf.Observable("t", -1.0, 10.0)
n = mf.Observable("n", -0.5, 20.5)
ctl, ctk = mf.Observable("ctl", -1.0, 1.0), mf.Observable("ctk", -1.0, 1.0)
phi = mf.Observable("phi", -3.141592653589793, 3.141592653589793)
```
"""
EXAMPLE = re.compile(r"\n*Example: ``(.*?)``\s*$", re.DOTALL)


def make_shapes() -> str:
    """Return the text of the page."""
    kinds = [getattr(mf.shapes, name) for name in mf.shapes.__all__]
    links = ", ".join(f"[{kind.__name__}](#{kind.__name__.lower()})" for kind in kinds)
    # those of particular processes come last
    modules = sorted({kind.__module__ for kind in kinds}, key=lambda name: (".physics." in name, name))
    return "\n".join([HEAD, links + "\n", *(family(module, kinds) for module in modules)])


def family(module: str, kinds: list[type[mf.Pdf]]) -> str:
    """Return the densities of one file, under the sentence it opens with."""
    own = [kind for kind in kinds if kind.__module__ == module]
    own.sort(key=lambda kind: inspect.getsourcelines(kind)[1])
    title = (sys.modules[module].__doc__ or "").split("\n\n")[0].strip().rstrip(".")
    return "\n".join([f"## {title}\n", *map(section, own)])


def section(kind: type[mf.Pdf]) -> str:
    """Return one density: its docstring, its arguments, how it is integrated and drawn, an example."""
    text = inspect.getdoc(kind) or ""
    example = EXAMPLE.search(text)
    assert example, f"{kind.__name__}: its docstring ends with an example"
    formula, _, rest = text[: example.start()].partition("\n\n")
    lines = [f"### {kind.__name__}\n", formula + "\n", *([rest + "\n"] if rest else [])]
    lines += ["| argument | is |", "|---|---|", *arguments(kind), ""]
    lines += [how(kind) + "\n", "```python", f"mf.shapes.{example[1]}", "```\n"]
    return "\n".join(lines)


def arguments(kind: type[mf.Pdf]) -> list[str]:
    """Return rows of a table: the name of each argument, and what may stand there."""
    rows = []
    for name in inspect.signature(kind).parameters:
        domain = declared_arguments(kind).get(name)
        if domain is None:
            what = "a list of observables"
        elif domain is mf.Observable:
            what = "an observable"
        elif domain is bool:
            what = "True or False"
        else:
            kind_of = ("a number,", "a list of numbers, each", "a list of rows of numbers, each")
            what = f"{kind_of[domain.many]} {domain.rule}"
        rows.append(f"| `{name}` | {what} |")
    return rows


def is_closed(kind: type[mf.Pdf]) -> bool:
    """Return whether a density has a formula for its integral over the whole range."""
    return kind.integral is not mf.Pdf.integral and is_formula(kind.integral)


def is_formula(integral: Any) -> bool:
    """Return whether a method does not integrate numerically."""
    return "integral_over" not in inspect.getsource(integral)


def how(kind: type[mf.Pdf]) -> str:
    """Return how a density is integrated and drawn, as the methods that it overrides tell."""
    whole = "in closed form over the whole range, else by quadrature"
    integral = whole if is_closed(kind) else "by quadrature"
    between = kind.integral_between
    integral = (
        "in closed form" if between is not mf.Pdf.integral_between and is_formula(between) else integral
    )
    drawn = "by inversion" if kind.quantile is not mf.Pdf.quantile else "under an envelope"
    drawn = drawn if kind.recipe is mf.Pdf.recipe else "by a transformation of normal numbers"
    return f"Integrated {integral}, drawn {drawn}."


if __name__ == "__main__":
    TARGET.write_text(make_shapes(), encoding="utf-8")
