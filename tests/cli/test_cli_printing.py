"""Tables on a terminal: cut to its width, numbers aligned, warnings in red."""

import io

import pytest
from rich.console import Console

from morefit.cli.printing import BAD, MINOR, fold, headline, remark_style, show_tables, width_of
from morefit.text.tables import Column

WIDE = [
    Column("parameter", ("mu", "sigma"), numeric=False),
    *(Column(f"number {k}", ("1.5", "-10.25")) for k in range(4)),
    Column("+-", ("0.1", "0.01")),
    Column("", ("", "AT LIMIT"), numeric=False),
]


def shown(width, *tables, colour=False):
    text = io.StringIO()
    show_tables(
        Console(file=text, width=width, force_terminal=colour, color_system="standard" if colour else None),
        *tables,
    )
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_table_that_fits_is_in_one_piece_with_points_below_each_other():
    assert shown(90, WIDE[:2]) == [
        "",
        "parameter  number 0",
        "───────────────────",
        "mu             1.5",
        "sigma        -10.25",
        "",
    ]


@pytest.mark.parametrize("width", [24, 40, 50])
def test_a_table_that_is_too_wide_is_cut_and_says_its_remarks_below(width):
    lines = shown(width, WIDE)
    assert max(map(len, lines)) <= width
    assert sum(line.startswith("parameter") for line in lines) > 1
    assert lines[-2] == "sigma: AT LIMIT"
    assert all(any(f"number {k}" in line for line in lines) for k in range(4))


def test_pieces_are_alike_in_width_and_errors_stay_with_their_numbers():
    pieces = fold(WIDE[:-1], 52)
    assert [[c.heading for c in piece] for piece in pieces] == [
        ["parameter", "number 0", "number 1"],
        ["parameter", "number 2", "number 3", "+-"],
    ]
    assert all(width_of(piece) <= 52 for piece in pieces)


def test_a_column_wider_than_the_terminal_is_shown_all_the_same():
    assert [len(piece) for piece in fold(WIDE[:3], 5)] == [2, 2]


def test_remarks_in_capitals_stand_out():
    assert remark_style("AT LIMIT") == BAD
    assert remark_style("fixed") == MINOR
    red = next(line for line in shown(99, WIDE, colour=True) if "AT LIMIT" in line)
    assert "\x1b[1;31mAT LIMIT" in red


@pytest.mark.parametrize(("good", "code"), [(True, "32"), (False, "31")])
def test_the_verdict_is_green_or_red(good, code):
    text = io.StringIO()
    console = Console(file=text, width=40, force_terminal=True, color_system="standard", highlight=False)
    headline(console, "fit of FL: nll 1\n  a reason", good=good)
    assert text.getvalue().startswith(f"\x1b[1;{code}mfit of FL")


def test_markup_in_names_is_shown_as_it_is():
    assert "[red]x[/red]" in shown(90, [Column("parameter", ("[red]x[/red]",), numeric=False)])[3]
