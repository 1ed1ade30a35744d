"""Write docs/api.md from the docstrings of all public names: ``python docs/make_api.py``."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import morefit as mf

TARGET = Path(__file__).resolve().parent / "api.md"
HEAD = """\
# Reference

Every public name in the words of its docstring; `help(mf.fit)` shows the same. Examples use what stands here:

```python
import numpy as np
import morefit as mf

m, t, d = mf.Observable("m", 5.0, 7.0), mf.Observable("t", 0.0, 10.0), mf.Observable("d", -1.0, 1.0)
ctl, ctk, phi = mf.Observable("ctl", -1, 1), mf.Observable("ctk", -1, 1), mf.Observable("phi", -np.pi, np.pi)
mu, sigma = mf.Parameter("mu", 5.8, 5.5, 6.1), mf.Parameter("sigma", 0.1, 0.02, 0.5)
slope, tau = mf.Parameter("slope", -1.0, -5.0, 0.0), mf.Parameter("tau", 1.5, 0.5, 3.0)
n_signal, n_background = mf.Parameter("n_signal", 300, 0, 5000), mf.Parameter("n_background", 700, 0, 5000)
signal, background = mf.Gaussian(m, mu, sigma), mf.Exponential(m, slope)
model = mf.Sum([signal, background], yields=[n_signal, n_background], labels=["signal", "background"])
data = mf.generate(model, seed=1)
nll = mf.Likelihood(model, data)
result = mf.fit(nll)
```

This file is made by `python docs/make_api.py`; change the docstrings instead of it.
"""
# sections by the room that a name comes from, in the order of a first fit
SECTIONS = {
    "model": "Observables, parameters, models",
    "acceptance": "Acceptances",
    "functions": "Functions of formulas",
    "data": "Data",
    "likelihood": "Likelihoods",
    "minimise": "Fits",
    "toys": "Toys",
    "intervals": "Intervals, limits, tests",
    "plots": "Plots",
    "inspect": "Inside",
    "targets": "Backends",
    "errors": "Errors",
}
ROOMS = {"expr": "functions", "histfactory": "likelihood"}  # of names that belong to another section
BRIEF = {"functions", "errors"}  # rooms with one line for each name
RESULTS = {"minimise", "toys", "intervals", "plots", "inspect"}  # rooms whose classes are returned, not made
# what users call of classes that have more methods than that, and what is described at another class
MEMBERS = {
    "Pdf": "pdf cdf derivative integrate probability_in expected_in marginal replace choose observables parameters",
    "Likelihood": "value gradient hessian per_event bad_events parameters",
    "BinnedLikelihood": "expected counts",
    "LeastSquares": "",
    "Simultaneous": "labels observables",
    "Category": "",
    "Constraint": "",
    "Parameter": "unblind",
    "Observable": "",
    "Derived": "",
    "Cpu": "",
    "OpenCL": "",
    "Expansion": "",
    "SampledExpansion": "",
    "Simulation": "",
    "Bootstrap": "covariance errors bias interval save load",
    "FeldmanCousins": "interval p_values p_errors critical significances save load",
    "NeymanBelt": "interval save load",
    "GoodnessOfFit": "p_value toy_p_value toy_p_error",
    "Contour": "lines delta",
    "Interval": "pieces",
}
EXAMPLE = re.compile(r"\n*Example: ``(.*?)``\s*$", re.DOTALL)


def make_api() -> str:
    """Return the text of the page."""
    by_section: dict[str, list[tuple[str, Any]]] = {room: [] for room in SECTIONS}
    for name, thing in public_names():
        by_section[room_of(thing)].append((name, thing))
    for room in RESULTS:
        by_section[room].sort(key=lambda one: inspect.isclass(one[1]))  # functions before what they return
    index = [
        f"* [{SECTIONS[room]}](#{anchor(SECTIONS[room])}): {links(room, some)}"
        for room, some in by_section.items()
    ]
    return "\n".join([HEAD, *index, "", *(section(room, some) for room, some in by_section.items())])


def public_names() -> Iterator[tuple[str, Any]]:
    """Go through all names but shapes, which have a page of their own; those of modules have the module before them."""
    top = {name: getattr(mf, name) for name in mf.__all__}
    rooms = {name: thing for name, thing in top.items() if isinstance(thing, types.ModuleType)}
    yield from ((n, thing) for n, thing in top.items() if n not in rooms and n not in mf.shapes.__all__)
    known = [id(thing) for thing in top.values()]
    for name, module in rooms.items():
        inner = {n: getattr(module, n) for n in module.__all__ if n not in mf.shapes.__all__}
        yield from ((f"{name}.{n}", thing) for n, thing in inner.items() if id(thing) not in known)


def room_of(thing: Any) -> str:
    """Return the section of something, by the room that it is written in."""
    room = thing.__module__.split(".")[1]
    room = ROOMS.get(room, room)
    return "acceptance" if thing.__module__ == "morefit.model.acceptance" else room


def heading(name: str, thing: Any) -> str:
    return f"class mf.{name}" if inspect.isclass(thing) else f"mf.{name}"


def anchor(title: str) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def links(room: str, some: list[tuple[str, Any]]) -> str:
    """Return the names of a section, with links where each has a heading."""
    if room in BRIEF:
        return ", ".join(f"`{name}`" for name, _ in some)
    return ", ".join(f"[{name}](#{anchor(heading(name, thing))})" for name, thing in some)


def section(room: str, some: list[tuple[str, Any]]) -> str:
    """Return one section: a table of brief entries, or an entry for each name."""
    if room in BRIEF:
        rows = [f"| `mf.{name}{signature(thing)}` | {first_sentence(thing)} |" for name, thing in some]
        return "\n".join([f"## {SECTIONS[room]}\n", "| name | what it is |", "|---|---|", *rows, ""])
    note = "All densities of `mf.shapes` are in [shapes.md](shapes.md).\n\n" if room == "model" else ""
    return "\n".join(
        [f"## {SECTIONS[room]}\n", note + "\n".join(entry(name, thing, room) for name, thing in some)]
    )


def entry(name: str, thing: Any, room: str) -> str:
    """Return one name: its signature, its docstring, an example, its methods."""
    lines = [f"### {heading(name, thing)}\n"]
    if not inspect.isclass(thing) or (room not in RESULTS and not inspect.isabstract(thing)):
        call = signature(thing)
        lines += [f"`mf.{name}{call}`\n"] if "<factory>" not in call else []  # records are not made by users
    lines += [*described(thing), *methods(thing)]
    return "\n".join(lines)


def signature(function: Any) -> str:
    """Return the arguments of something with their defaults, without types; of errors, which users catch, none."""
    if inspect.isclass(function) and issubclass(function, Exception):
        return ""
    own = inspect.isclass(function) and not issubclass(function, mf.Pdf) and "__init__" in vars(function)
    full = inspect.signature(function.__init__ if own else function)
    plain = [
        p.replace(annotation=inspect.Parameter.empty) for p in full.parameters.values() if p.name != "self"
    ]
    return str(full.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def described(thing: Any) -> list[str]:
    """Return a docstring as Markdown, and its example as a block to run."""
    text = inspect.getdoc(thing) or ""
    example = EXAMPLE.search(text)
    lines = [markdown(text[: example.start()] if example else text) + "\n"]
    return [*lines, f"```python\n{example[1]}\n```\n"] if example else lines


def markdown(text: str) -> str:
    """Return a docstring with arguments as a list, and names in single quotes of Markdown."""
    text = re.sub(r"^(\w+)\n-{3,}\n", r"\1:\n\n", text, flags=re.M)
    text = re.sub(r"^(\w[\w, ]*) : ", r"* `\1`: ", text, flags=re.M)
    return text.replace("``", "`")


def methods(thing: Any) -> list[str]:
    """Return a table of what a class has: methods with their arguments, and attributes that are computed."""
    if not inspect.isclass(thing) or (issubclass(thing, mf.Pdf) and thing is not mf.Pdf):
        return []
    chosen = MEMBERS.get(thing.__name__)
    names = [n for n in vars(thing) if not n.startswith("_")] if chosen is None else chosen.split()
    rows = [row(n, inspect.getattr_static(thing, n)) for n in names]
    found = [one for one in rows if one]
    return ["| has | which is |", "|---|---|", *found, ""] if found else []


def first_sentence(thing: Any) -> str:
    """Return the first paragraph of a docstring in one line of a table."""
    return markdown(" ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())).replace(
        "|", chr(92) + "|"
    )


def row(name: str, member: Any) -> str:
    """Return one method or property; nothing for plain attributes, which the docstring of the class describes."""
    function = getattr(member, "__func__", member)
    if inspect.isfunction(function):
        plain = signature(function).replace("(cls, ", "(").replace("(cls)", "()")
        return f"| `{name}{plain}` | {first_sentence(function)} |"
    return (
        f"| `{name}` | {first_sentence(member)} |" if isinstance(member, property | cached_property) else ""
    )


if __name__ == "__main__":
    TARGET.write_text(make_api(), encoding="utf-8")
