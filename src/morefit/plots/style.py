"""Styles of figures: morefit's own, those of mplhep, and settings of matplotlib, in use while a figure is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from morefit.errors import BackendError, OptionError
from morefit.text.suggest import nearest, suggest

Style = str | Mapping[str, Any] | None
# Fonts that come with matplotlib, so that figures look the same everywhere.
OWN_STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 4.8), "figure.dpi": 100, "savefig.dpi": 200, "font.family": "STIXGeneral",
    "mathtext.fontset": "stix", "font.size": 14, "axes.labelsize": 16, "axes.linewidth": 1.1,
    "axes.formatter.limits": (-3, 5), "axes.formatter.use_mathtext": True, "legend.frameon": False,
    "legend.fontsize": 13, "legend.handlelength": 1.8, "lines.linewidth": 1.6, "lines.markersize": 4.0,
    "xtick.direction": "in", "ytick.direction": "in", "xtick.top": True, "ytick.right": True,
    "xtick.minor.visible": True, "ytick.minor.visible": True, "xtick.major.size": 6, "xtick.minor.size": 3,
    "ytick.major.size": 6, "ytick.minor.size": 3, "xaxis.labellocation": "right", "yaxis.labellocation": "top",
    "text.usetex": False,
}  # fmt: skip
GENERIC = ("serif", "sans-serif", "cursive", "fantasy", "monospace")  # names for lists of fonts


def load_pyplot() -> Any:
    """Return matplotlib.pyplot, or raise an error that names the package to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise BackendError('plot: matplotlib is not installed; pip install "morefit[plot]"') from None
    return plt


@contextmanager
def styled(style: Style) -> Iterator[None]:
    """Draw in a style: morefit's own, one of mplhep's by name, or one's own settings of matplotlib."""
    current = load_pyplot().rcParams
    chosen = settings(style)
    check_known(chosen, current)
    before = {name: current[name] for name in chosen}
    try:
        set_all(current, chosen)
        yield
    finally:  # rc_context would also undo what the backend of notebooks sets when the first figure is made
        current.update(before)


def check_known(chosen: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Refuse a name that matplotlib has no setting of."""
    for name in chosen:
        if name not in current:
            near = nearest(name, current)
            hint = f"did you mean '{near}'?" if near else "write style={'font.size': 12} and the like"
            raise OptionError(f"plot: style has {name!r}, which is no setting of matplotlib; {hint}")


def set_all(current: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Set all, or refuse what matplotlib does not take."""
    for name, value in chosen.items():
        try:
            current[name] = value
        except (TypeError, ValueError) as error:
            raise OptionError(f"plot: style has {value!r:.60} for '{name}': {error}") from None


def settings(style: Style) -> dict[str, Any]:
    """Return the settings of a style, such that nothing drawn depends on them later."""
    if style is None:
        return OWN_STYLE
    if not isinstance(style, str | Mapping):
        raise OptionError(
            f"plot: style must be the name of one of mplhep, or settings of matplotlib by name, got {style!r:.60}"
        )
    chosen = dict(named_style(style) if isinstance(style, str) else style)
    family = chosen.get("font.family")
    if family in GENERIC and f"font.{family}" in chosen:  # looked up when drawn, and so with other settings
        chosen["font.family"] = installed_font(chosen[f"font.{family}"], family)
        if chosen.get("mathtext.fontset", "custom") == "custom":  # as are the fonts of "custom"
            chosen["mathtext.fontset"] = "stix" if family == "serif" else "stixsans"
    return chosen


def installed_font(names: str | Sequence[str], family: str) -> str:
    """Return the first font of a list that is installed, as matplotlib logs those that are not; or one of its own."""
    from matplotlib.font_manager import get_font_names

    installed = {name.lower(): name for name in get_font_names()}
    listed = [names] if isinstance(names, str) else names
    own = "STIXGeneral" if family == "serif" else "DejaVu Sans"
    return next((installed[name.lower()] for name in listed if name.lower() in installed), own)


def named_style(name: str) -> Mapping[str, Any]:
    """Return a style of mplhep by name, such as "LHCb2" or "CMS"."""
    try:
        import mplhep
    except ImportError:
        raise BackendError(
            f"style '{name}': mplhep is not installed; pip install \"morefit[plot]\""
        ) from None
    known = {n: s for n, s in vars(mplhep.style).items() if n[:1].isupper() and isinstance(s, dict)}
    if name not in known:
        raise OptionError(f"style '{name}': not one of mplhep; {suggest(name, known)}")
    return cast("Mapping[str, Any]", known[name])
