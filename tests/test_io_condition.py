"""Conditions on events mean what a physicist means by them, and nothing else can be said in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morefit.data.condition import COMPARISONS, FUNCTIONS, condition
from morefit.errors import DataError

PT, ETA = np.array([1.0, 2.5, 3.0, 9.0]), np.array([0.0, -3.0, 2.0, -1.0], np.float32)
N, GOOD = np.array([0, 1, 2, 255], np.uint8), np.array([True, True, False, True])
COLUMNS = {
    "pt": PT,
    "eta": ETA,
    "n": N,
    "good": GOOD,
    "B0.M": PT,
    "event": np.array([2**62, 2**62 + 1, 3, 4]),
}


def judge(text):
    return condition(text).mask(COLUMNS, 4).tolist()


MEANINGS = {
    "pt > 2 & abs(eta) < 2.5": (PT > 2) & (np.abs(ETA) < 2.5),
    "pt > 2 && abs(eta) < 2.5": (PT > 2) & (np.abs(ETA) < 2.5),
    "pt > 2 and abs(eta) < 2.5": (PT > 2) & (np.abs(ETA) < 2.5),
    "(pt > 2) & (abs(eta) < 2.5)": (PT > 2) & (np.abs(ETA) < 2.5),
    "pt < 2 | eta < -2": (PT < 2) | (ETA < -2),
    "pt < 2 || eta < -2 && good": (PT < 2) | ((ETA < -2) & GOOD),
    "!good": ~GOOD,
    "~good & pt > 1": ~GOOD & (PT > 1),
    "not (pt > 2 | good)": ~((PT > 2) | GOOD),
    "pt != 3": PT != 3,
    "2 < pt < 5": (PT > 2) & (PT < 5),
    "2 < pt <= 3 != n": (PT > 2) & (PT <= 3) & (N != 3),
    "n - 1 >= 0": N.astype(int) - 1 >= 0,
    "n + n == 510": N == 255,
    "(pt > 2) + (eta < 0) + good >= 2": (PT > 2).astype(int) + (ETA < 0) + GOOD >= 2,
    "-pt < -2": PT > 2,
    "+pt > 2": PT > 2,
    "n ** -1 > 0.6": np.array([True, True, False, False]),
    "event == 4611686018427387905": np.array([False, True, False, False]),
    "event % 2 == 1": np.array([False, True, True, False]),
    "n // 2 == 1": N // 2 == 1,
    "max(pt, 3) == min(3, hypot(3, 4))": PT <= 3,
    "sqrt(pt*pt + eta**2) > 4": np.sqrt(PT**2 + ETA.astype(float) ** 2) > 4,
    "log(eta) > -1": np.array([False, False, True, False]),
    "1e1 > B0.M": PT < 10,
    "\n  pt >\n 2  ": PT > 2,
}


@pytest.mark.parametrize("text", MEANINGS)
def test_a_condition_means_what_it_says(text):
    assert judge(text) == MEANINGS[text].tolist()


@given(numbers=st.lists(st.floats(), min_size=1, max_size=8), bound=st.floats(-1e300, 1e300))
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_agree_with_python(operator, numbers, bound):
    found = condition(f"x {operator} {bound!r}").mask({"x": np.array(numbers)}, len(numbers))
    assert found.tolist() == [eval(f"a {operator} b", {"a": a, "b": bound}) for a in numbers]


def test_the_columns_are_those_named():
    assert condition("pt > 2 & abs(eta) < B0.M + pt").names == ("pt", "eta", "B0.M")
    assert condition(lambda eta, pt: eta > pt).names == ("eta", "pt")


def test_a_function_gets_its_columns_in_order_and_in_double_precision():
    def loose(eta, pt):
        assert eta.dtype == pt.dtype == np.float64
        return eta < pt

    assert condition(loose).mask(COLUMNS, 4).tolist() == (ETA < PT).tolist()
    assert condition(loose).text == "loose"


REFUSED = {
    "pt >": "is no expression, got invalid syntax",
    "pt > 2 eta": "is no expression",
    "": "is no expression",
    "(" * 500 + "pt" + ")" * 500 + " > 1": "is no expression",
    "__import__('os').system('true')": r"knows no function .__import__\(.os.\).system., only abs",
    "pt.__class__.__bases__[0] > 1": "has no meaning here",
    "open('x')": "knows no function 'open', only abs, ",
    "[x for x in pt]": "has no meaning here",
    "(lambda: pt)() > 1": "knows no function",
    "pt if good else eta": "has no meaning here",
    "pt[0] > 1": "has no meaning here",
    "(x := pt) > 1": "has no meaning here",
    "pt in (1, 2)": "'In' has no meaning here",
    "pt << 2 > 1": "'LShift' has no meaning here",
    "pt ^ 2 > 1": r"'\^' has no meaning, write \*\* for a power",
    "f'{pt}' > 1": "has no meaning here",
    "pt > 'a'": "'a' is no number",
    "pt > 1j": "1j is no number",
    "(pt + 1).real > 1": "is no name of a column",
    "abs(pt, eta) > 1": r"abs\(\) takes 1 arguments, got 2",
    "max(pt) > 1": r"max\(\) takes 2 arguments, got 1",
    "abs(x=pt) > 1": "knows no function 'abs'",
    "pt & good": "'pt' must be a condition, got a number; compare it, as in pt != 0",
    "n & 4": "'n' must be a condition, got a number",
    "pt > 2 & n": "'n' must be a condition, got a number",
    "!n": "'n' must be a condition, got a number",
    "pt + 1": "must be true or false for each of 4 events, got shape .4,. of dtype float64",
    "1 < 2": r"must be true or false for each of 4 events, got shape \(\)",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(DataError, match=f"(?s)^cut '.*': .*{REFUSED[text]}"):
        judge(text)


@pytest.mark.parametrize(
    ("cut", "says"),
    [(3, "cut 3: must be a text or a function"), (lambda: True, "cut '<lambda>': the arguments .* got none"),
     (lambda *columns: True, r"named as columns, got \*columns; write lambda pt, eta"),
     (dict, "named as columns, got one that does not tell")],
)  # fmt: skip
def test_what_is_no_function_of_columns_is_refused(cut, says):
    with pytest.raises(DataError, match=says):
        condition(cut)


def test_a_function_must_return_one_truth_an_event():
    with pytest.raises(DataError, match=r"cut '<lambda>': must be true or false for each of 4 events, got shape \(4,\) of dtype float64"):  # fmt: skip
        condition(lambda pt: pt).mask(COLUMNS, 4)
    with pytest.raises(DataError, match=r"got shape \(\) of dtype bool"):
        condition(lambda pt: True).mask(COLUMNS, 4)


def test_huge_powers_cost_nothing():
    assert judge("pt < 9 ** 9 ** 9") == [True] * 4


def test_every_comparison_and_function_can_be_written():
    assert len(COMPARISONS) == 6
    for name, function in FUNCTIONS.items():
        assert condition(f"{name}({', '.join(['pt'] * function.nin)}) > 0").names == ("pt",)
