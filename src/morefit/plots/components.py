"""The components of a model that are drawn, each with a name and its share of the events."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.errors import ModelError
from morefit.expr import Expr
from morefit.model import Pdf

# names of artists that are no components
TAKEN = ("data", "model", "extrapolation", "band", "legend", "pulls", "residuals", "ratio")


def split(model: Pdf, labels: Sequence[str] | None, nested: bool = False) -> dict[str, tuple[Expr, Pdf]]:
    """Return the components of a model by name, each with its share of the events; a model without any is one."""
    names, parts = components_of(model, nested)
    names = names if labels is None else list(labels)
    if len(names) != len(parts) or len({*names, *TAKEN}) < len(names) + len(TAKEN):
        rule = f"labels must name the {len(parts)} components of the model, each differently"
        raise ModelError(f"plot: {rule} and not {', '.join(map(repr, TAKEN))}, got {names}")
    return dict(zip(names, parts, strict=True))


def components_of(model: Pdf, nested: bool) -> tuple[list[str], list[tuple[Expr, Pdf]]]:
    """Return the components of a model and their names; nested ones down to those that have no components."""
    names: list[str] = []
    parts: list[tuple[Expr, Pdf]] = []
    for name, (share, part) in zip(model.share_names(), model.shares(), strict=True):
        inner, own = components_of(part, nested) if nested and part is not model else ([], [])
        if len(own) > 1:
            names += [f"{name}: {one}" for one in inner]
            parts += [(share * weight, one) for weight, one in own]
        else:
            names.append(name)
            parts.append((share, part))
    return names, parts
