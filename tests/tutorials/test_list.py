"""The page of RooFit's tutorials lists what is tested, all of the 97 public ones."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "roofit-tutorials.md"
# how many each series has in ROOT 6.40; some numbers are not in use
PUBLIC = {"1": 11, "2": 13, "3": 16, "4": 9, "5": 13, "6": 17, "7": 12, "8": 4, "9": 2}


def listed():
    rows = re.findall(r"^\| (\d[\dab, ]*) \|", PAGE.read_text(encoding="utf-8"), re.M)
    return [number for row in rows for number in row.split(", ")]


def test_the_page_lists_every_tutorial_once():
    numbers = listed()
    assert len(set(numbers)) == len(numbers)
    assert {series: sum(n[0] == series for n in numbers) for series in PUBLIC} == PUBLIC


def test_every_tutorial_of_the_page_has_a_test():
    sources = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    names = " ".join(re.findall(r"^def (test_rf\w+)", sources, re.M))
    assert [n for n in listed() if f"rf{n}" not in names] == []
