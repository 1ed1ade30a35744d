"""Numbers, names and tables as LaTeX."""

import pytest

from morefit.text.tables import Column, latex_measurement, latex_number, latex_table, latex_text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("1.5",), "$1.5$"),
        (("1.5", "0.2"), r"$1.5 \pm 0.2$"),
        (("1.5", "0.2", ("-0.1", "+0.3")), "$1.5^{+0.3}_{-0.1}$"),
        (("3.1e-9", "0.4e-9"), r"$(3.1 \pm 0.4) \times 10^{-9}$"),
        (("3.1e-9", "0.4e-9", ("-0.3e-9", "+0.5e-9")), r"$3.1^{+0.5}_{-0.3} \times 10^{-9}$"),
        (("3.1e+300",), r"$3.1 \times 10^{300}$"),
        (("3.1e-9", "nan"), r"$(3.1 \pm \mathrm{nan}) \times 10^{-9}$"),
        (("3.1e+20", "0.5"), r"$3.1 \times 10^{20} \pm 0.5$"),
        (("-inf", "nan"), r"$-\infty \pm \mathrm{nan}$"),
    ],
)
def test_a_measurement_has_one_power_of_ten(arguments, expected):
    assert latex_measurement(*arguments) == expected


def test_numbers_have_powers_of_ten():
    assert [latex_number(text) for text in ("2", "2e-05", "inf")] == ["2", r"2 \times 10^{-5}", r"\infty"]


def test_special_characters_are_escaped():
    assert latex_text("a_b & 50%\n{x}^2 \\") == r"a\_b \& 50\% \{x\}\textasciicircum{}2 \textbackslash{}"


def test_a_table_is_a_tabular():
    columns = [Column("name", ("a", "b"), numeric=False), Column("n", ("1", "2"))]
    assert latex_table(columns).splitlines() == [
        r"\begin{tabular}{lr}", r"\hline", r"name & n \\", r"\hline", r"a & 1 \\", r"b & 2 \\", r"\hline",
        r"\end{tabular}",
    ]  # fmt: skip
