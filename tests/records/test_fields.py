"""A mapping by name is read-only, takes what has a name, and equals a dictionary."""

import copy
import pickle

import pytest

import morefit as mf
from morefit.records.fields import ByName

NUMBERS = ByName({"mu": 1.0, "sigma": 2.0})
MU = mf.Parameter("mu", 5.0)


def test_names_and_things_with_names_are_keys():
    assert NUMBERS["mu"] == NUMBERS[MU] == NUMBERS[mf.Observable("mu", 0.0, 1.0)] == 1.0
    assert MU in NUMBERS and "mu" in NUMBERS and "q" not in NUMBERS and 3 not in NUMBERS
    assert NUMBERS.get(MU) == 1.0 and NUMBERS.get("q", 7.0) == 7.0


def test_what_has_no_name_is_a_wrong_key():
    for key in (3, None):
        with pytest.raises(KeyError, match="; there are 'mu', 'sigma'"):
            NUMBERS[key]
    with pytest.raises(KeyError, match=r"no 1 \+ mu; did you mean 'mu'\?"):
        NUMBERS[MU + 1]


def test_it_equals_a_dictionary_and_is_one_elsewhere():
    assert NUMBERS == {"mu": 1.0, "sigma": 2.0} and dict(NUMBERS) == NUMBERS and {**NUMBERS} == NUMBERS
    assert repr(NUMBERS) == "{'mu': 1.0, 'sigma': 2.0}" and list(NUMBERS) == ["mu", "sigma"]


@pytest.mark.parametrize("journey", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_it_survives_a_journey(journey):
    again = journey(NUMBERS)
    assert type(again) is ByName and again == NUMBERS and again[MU] == 1.0


def test_it_cannot_be_changed():
    with pytest.raises(TypeError, match="does not support item assignment"):
        NUMBERS["mu"] = 3.0
