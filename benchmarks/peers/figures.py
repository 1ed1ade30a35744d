"""The paper's two figures: time for a toy against events, a line a system: ``python benchmarks/peers/figures.py [JSON]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from peers.problem import PROBLEMS, TITLES
from peers.systems import PEERS
from peers.table import rows_of


def draw(data: dict[str, Any], model: str, path: Path) -> None:
    """Draw one figure, as PNG and as SVG."""
    figure, axes = plt.subplots(figsize=(8.4, 5.2), layout="constrained")
    handles, dashed = {}, False
    for system, threads, cells in rows_of(data, model):
        known = sorted((n, c["median_ms"]) for n, c in cells.items() if "median_ms" in c)
        if not known:
            continue
        peer, several = PEERS[system], threads > 1
        style = {"color": peer.colour, "marker": "o", "markersize": 4, "linewidth": 2.4 if peer.ours else 1.3}
        axes.plot(*zip(*known, strict=True), linestyle="--" if several else "-", **style)
        handles[system] = Line2D([], [], label=peer.label, **style)
        dashed = dashed or several
    cores = data["machine"]["cores"]
    kinds = [Line2D([], [], color="black", label="1 thread")]
    if dashed:
        kinds.append(Line2D([], [], color="black", linestyle="--", label=f"{cores} threads"))
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="events in a toy",
        ylabel="time for a toy [ms]",
        title=TITLES[model],
    )
    axes.grid(alpha=0.3, which="major")
    figure.legend(handles=[*handles.values(), *kinds], loc="outside right center", fontsize=9, frameon=False)
    figure.text(0.01, 0.005, data["machine"]["processor"], fontsize=7, color="gray")
    for kind in ("png", "svg"):
        figure.savefig(
            path.with_suffix(f".{kind}"), dpi=150, metadata={"Date": None} if kind == "svg" else None
        )
    plt.close(figure)


def main() -> None:
    default = Path(__file__).parents[1] / "results" / "peers.json"
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    data = json.loads(source.read_text())
    for model in PROBLEMS:
        if any(c["model"] == model for c in data["cells"]):
            draw(data, model, source.with_name(f"{source.stem}_{model}"))


if __name__ == "__main__":
    main()
