"""Tables of results: their columns, as plain text with decimal points below each other, as HTML and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from morefit.dataclass import dataclass


@dataclass(frozen=True)
class Column:
    """One column of a table; numeric ones are aligned at their decimal points."""

    heading: str
    cells: Sequence[str]
    numeric: bool = True


def text_table(columns: Sequence[Column]) -> str:
    """Return a table as aligned plain text."""
    rows = zip(*map(aligned, columns), strict=True)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def aligned(column: Column) -> list[str]:
    """Return heading and cells padded to one width."""
    cells = align_points(column.cells) if column.numeric else column.cells
    width = max(map(len, [column.heading, *cells]))
    pad = str.rjust if column.numeric else str.ljust
    return [pad(cell, width) for cell in (column.heading, *cells)]


def align_points(cells: Sequence[str]) -> list[str]:
    """Pad numbers so that their decimal points are below each other; cells without digits are right-aligned."""
    before = max(map(digits_before, cells), default=0)
    lines = [" " * (before - digits_before(cell)) + cell if has_digits(cell) else cell for cell in cells]
    width = max(map(len, lines), default=0)
    return [(str.ljust if has_digits(line) else str.rjust)(line, width) for line in lines]


def digits_before(cell: str) -> int:
    """Return the number of characters before the decimal point, 0 for a cell without digits."""
    return len(cell.partition(".")[0]) if has_digits(cell) else 0


def has_digits(cell: str) -> bool:
    """Return whether a cell contains a finite number."""
    return any(map(str.isdigit, cell))


GOOD, BAD = "#d9f2d9", "#f8c9c9"
WARNINGS = ("AT LIMIT", "UNDETERMINED")  # cells with a coloured background


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> str:
    """Return text as a page shows it."""
    from html import escape  # with a table of characters that only pages need

    return escape(text)


def html_page(
    headline: str,
    details: Iterable[str],
    tables: Iterable[Sequence[Column]],
    notes: Iterable[str],
    *,
    good: bool,
) -> str:
    """Return a coloured headline with details, then tables, then notes line by line."""
    lines = "<br>".join([f"<b>{escaped(headline)}</b>", *map(escaped, details)])
    head = f'<p style="background:{GOOD if good else BAD};padding:4px">{lines}</p>'
    foot = "<br>".join(map(escaped, notes))
    return f"{head}{''.join(map(html_table, tables))}{f'<p>{foot}</p>' if foot else ''}"


def html_table(columns: Sequence[Column], caption: str = "") -> str:
    """Return a table; the lines of a caption stand above it."""
    above = f"<caption>{'<br>'.join(map(escaped, caption.splitlines()))}</caption>" if caption else ""
    head = "".join(f'<th style="{side_of(c)}">{escaped(c.heading)}</th>' for c in columns)
    rows = zip(*([html_cell(column, cell) for cell in column.cells] for column in columns), strict=True)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table>{above}<tr>{head}</tr>{body}</table>"


def html_text(text: str) -> str:
    """Return text with its spaces and line breaks, in a font in which columns stay aligned."""
    return f'<pre style="font-family:monospace;white-space:pre;overflow-x:auto">{escaped(text)}</pre>'


def html_cell(column: Column, cell: str) -> str:
    """Return one cell of a table; warnings have a coloured background."""
    colour = f";background:{BAD}" if cell in WARNINGS else ""
    text = cell if isinstance(cell, Markup) else escaped(cell)
    return f'<td style="{side_of(column)};white-space:nowrap{colour}">{text}</td>'


def side_of(column: Column) -> str:
    """Return the style that aligns a column and its heading."""
    return f"text-align:{'right' if column.numeric else 'left'}"


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
