"""What makes a study this one, to tell whether a file holds the same: models to the last bit, versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib import metadata
from typing import Any

from morefit.archive import morefit_version
from morefit.expr import Expr, Symbol, Table, to_text, toposort
from morefit.model import Pdf
from morefit.study.task import Statistic, Task

SHOWN = 120  # characters of a model in a message
Facts = dict[str, Any]


def facts_of(task: Task) -> Facts:
    """Return what makes a study this one; what follows from it, such as results, is not here."""
    return {
        "model": fingerprint(task.model),
        "fitted model": fingerprint(task.fit_model),
        "truth": dict(task.truth),
        "start": dict(task.start),
        "seed": task.seed,
        "statistic": name_of(task.statistic),
        "versions": versions(),
    }


def fingerprint(model: Pdf) -> dict[str, str]:
    """Return a digest of everything in a model that results depend on, and a text to recognise it by."""
    density, expected = model.density(), model.expected_events()
    roots = [density, model.log_intensity(), *([] if expected is None else [expected])]
    lines = [f"{o.name} {o.low!r} {o.high!r}" for o in model.observables]
    lines += [f"{p.name} {p.low!r} {p.high!r} {p.fixed}" for p in model.parameters]
    lines += graph_lines(roots)
    return {"text": to_text(density, SHOWN), "digest": sha256("\n".join(lines).encode()).hexdigest()}


def graph_lines(roots: Sequence[Expr]) -> Iterator[str]:
    """Write graphs a node a line, to the last bit: text in full would repeat what is shared."""
    number: dict[Expr, int] = {}
    for node in toposort(*roots):
        number[node] = len(number)
        yield f"{node.op.name} {leaf_text(node.value)} {[number[a] for a in node.args]}"
    yield str([number[root] for root in roots])


def leaf_text(value: object) -> str:
    if isinstance(value, Table):
        return f"{value.name} {sha256(value.numbers).hexdigest()}"
    if isinstance(value, Symbol):
        return value.name
    return value.hex() if isinstance(value, float) else str(value)


def name_of(statistic: Statistic | None) -> str | None:
    """Name a function; what is in it cannot be compared."""
    if statistic is None:
        return None
    return f"{statistic.__module__}.{getattr(statistic, '__qualname__', type(statistic).__qualname__)}"


def versions() -> dict[str, str]:
    """Return the versions of what the last bits depend on."""
    return {"morefit": morefit_version()} | {n: metadata.version(n) for n in ("numpy", "llvmlite", "iminuit")}


def differences(old: Facts, new: Facts) -> Iterator[str]:
    """Say in what two studies differ."""
    for name, asked in new.items():
        found = old.get(name)
        if found == asked:
            continue
        if name.endswith("model"):
            yield f"{name}: {(found or {}).get('text')!r} in the file, {asked['text']!r} asked for"
        elif isinstance(asked, dict):
            yield from differences({f"{name} {n}": v for n, v in (found or {}).items()},
                                   {f"{name} {n}": v for n, v in asked.items()})  # fmt: skip
        else:
            yield f"{name}: {found!r} in the file, {asked!r} asked for"
