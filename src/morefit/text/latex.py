"""Tables, names and measured numbers as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.text.tables import Column

SPECIAL = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
})  # fmt: skip
NOT_FINITE = {"nan": r"\mathrm{nan}", "inf": r"\infty", "-inf": r"-\infty"}


def latex_text(text: str) -> str:
    """Return plain text with the special characters of LaTeX escaped."""
    return " ".join(text.split()).translate(SPECIAL)


def latex_number(text: str) -> str:
    """Return a number that is written as text, with or without an exponent, in the notation of mathematics."""
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else NOT_FINITE.get(text, text)


def latex_measurement(value: str, error: str = "", minos: tuple[str, str] | None = None) -> str:
    """Return a value with its error, or with lower and upper errors; a common power of ten is factored out."""
    numbers = [value, *(minos or ([error] if error else []))]
    exponents = {number.partition("e")[2] for number in numbers if number not in NOT_FINITE}
    common = exponents.pop() if len(exponents) == 1 else ""
    shown, *errors = (latex_number(n.removesuffix(f"e{common}") if common else n) for n in numbers)
    if minos:
        lower, upper = errors
        shown = f"{shown}^{{{upper}}}_{{{lower}}}"
    elif errors:
        shown = rf"{shown} \pm {errors[0]}"
    factored = f"({shown})" if errors and not minos and common else shown
    return rf"${factored} \times 10^{{{int(common)}}}$" if common else f"${shown}$"


def latex_table(columns: Sequence[Column]) -> str:
    """Return a tabular; the cells are LaTeX already."""
    layout = "".join("r" if column.numeric else "l" for column in columns)
    head, *rows = (
        rf"{' & '.join(cells)} \\"
        for cells in zip(*([column.heading, *column.cells] for column in columns), strict=True)
    )
    lines = [
        rf"\begin{{tabular}}{{{layout}}}",
        r"\hline",
        head,
        r"\hline",
        *rows,
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines)
