"""The paper's two tables as Markdown, and where a peer is faster: ``python benchmarks/peers/table.py [JSON]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.problem import PROBLEMS, TITLES
from peers.systems import PEERS

WHY = {
    "morefit-batched": "a study spends some ms on its graph before the first toy, whatever the number of events",
    "morefit-single": "a call of `generate` and one of `fit` take some time of Python, to check data and make results",
    "morefit-numeric": "steps are taken in Python, as values of many points are asked for at once",
    "morefit-minuit": (
        "a fit with Minuit takes up to a millisecond of Python for any number of events, to check the data, judge the "
        "minimum and make the result, which a likelihood by hand leaves out"
    ),
}


def tables(data: dict[str, Any]) -> str:
    """Return a table for each model, with what was not run and what is faster than morefit."""
    machine = data["machine"]
    head = (
        f"Milliseconds for one toy: generate, fit from the truth, Hesse; median of several after the first; "
        f"Minuit's strategy {data['settings']['strategy']}; {machine['processor']}, {machine['cores']} cores."
    )
    parts = [head, *(table(data, model) for model in PROBLEMS), *notes(data)]
    return "\n\n".join(p for p in parts if p)


def rows_of(data: dict[str, Any], model: str) -> Iterator[tuple[str, int, dict[int, dict[str, Any]]]]:
    """Yield system, threads and cells by their size, in the order of systems."""
    for system in PEERS:
        cells = [c for c in data["cells"] if (c["system"], c["model"]) == (system, model)]
        for threads in sorted({c["threads"] for c in cells}):
            yield system, threads, {c["events"]: c for c in cells if c["threads"] == threads}


def table(data: dict[str, Any], model: str) -> str:
    rows = list(rows_of(data, model))
    sizes = sorted({n for _, _, cells in rows for n in cells})
    if not rows:
        return ""
    lines = [
        f"| {TITLES[model]} | threads | "
        + " | ".join(size_text(n) for n in sizes)
        + " | import | first toy |",
        "|---|---|" + "---|" * (len(sizes) + 2),
    ]
    for system, threads, cells in rows:
        texts = [cell_text(cells.get(n)) for n in sizes]
        smallest = cells[min(cells)]
        once = [f"{smallest[k]:.1f} s" if k in smallest else "" for k in ("import_s", "first_s")]
        lines.append(f"| {PEERS[system].label} | {threads} | " + " | ".join([*texts, *once]) + " |")
    return "\n".join(lines)


def size_text(events: int) -> str:
    power = len(str(events)) - 1
    return f"10^{power} events" if events == 10**power else f"{events} events"


def thread_text(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def cell_text(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    if "median_ms" not in cell:
        return "failed" if "error" in cell else "not run"
    milliseconds = cell["median_ms"]
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.2g}"


def notes(data: dict[str, Any]) -> Iterator[str]:
    """Yield what the tables leave open: cells that were not run, and peers that are faster, with the reason."""
    for cell in data["cells"]:
        if "not_run" in cell:
            name = f"{PEERS[cell['system']].label}, {cell['model']}, {thread_text(cell['threads'])}"
            yield f"Not run: {name}, {size_text(cell['events'])}: {cell['not_run']}."
    for name, facts in data["environments"].items():
        if "cannot be installed" in facts:
            yield f"Not run: {name} cannot be installed here: {facts['cannot be installed']}"
    for ours, why in WHY.items():
        faster = list(beaten(data, ours))
        if faster:
            yield f"Faster than {PEERS[ours].label}, each with its best number of threads: {'; '.join(faster)}. Why: {why}."


def beaten(data: dict[str, Any], ours: str) -> Iterator[str]:
    """Yield the peers that are faster somewhere, and where, and how much."""
    for model in PROBLEMS:
        mine = best_times(data, ours, model)
        for system in (s for s in PEERS if not PEERS[s].ours):
            theirs = best_times(data, system, model)
            ratios = {n: mine[n] / t for n, t in sorted(theirs.items()) if n in mine and t < mine[n]}
            if ratios:
                where = ", ".join(f"{size_text(n)} {r:.1f} times" for n, r in ratios.items())
                yield f"{PEERS[system].label}, {model} ({where})"


def best_times(data: dict[str, Any], system: str, model: str) -> dict[int, float]:
    """Return the shortest median by events, over numbers of threads."""
    found: dict[int, float] = {}
    for c in data["cells"]:
        if (c["system"], c["model"]) == (system, model) and "median_ms" in c:
            found[c["events"]] = min(c["median_ms"], found.get(c["events"], c["median_ms"]))
    return found


def main() -> None:
    default = Path(__file__).parents[1] / "results" / "peers.json"
    print(tables(json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else default).read_text())))


if __name__ == "__main__":
    main()
