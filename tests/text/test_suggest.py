"""A wrong name is answered with the nearest one, or with all there are."""

import pytest

from morefit.text.suggest import nearest, suggest

KNOWN = ["mu", "sigma", "fsig", "Alpha"]


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("sigm", "sigma"),
        ("SIGMA", "sigma"),
        ("alpha", "Alpha"),
        ("fs", "fsig"),
        ("q", None),
        ("", None),
        (3, None),
    ],
)
def test_the_nearest_name_is_proposed_whatever_its_case(name, match):
    assert nearest(name, KNOWN) == match


def test_without_a_near_name_all_are_listed():
    assert suggest("sigm", KNOWN) == "did you mean 'sigma'?"
    assert suggest("q", KNOWN) == "there are 'mu', 'sigma', 'fsig', 'Alpha'"
    assert suggest("q", []) == "there are none"
