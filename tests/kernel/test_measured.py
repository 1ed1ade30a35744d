"""What constraints measure in toys is the same in compiled code as in NumPy."""

import numpy as np
import pytest
from scipy.special import ndtri

import morefit as mf
from morefit.kernel import measured_program
from morefit.kernel.measured_program import MeasuredTable, draw_measured, normal_quantile
from morefit.likelihood.auxiliary import AuxiliaryCount
from morefit.random.philox import toy_uniforms

A, B = mf.Parameter("a", 2.0, 0.0, 9.0), mf.Parameter("b", 300.0, 0.0, 900.0)
VALUES = {"a": 2.5, "b": 310.0}
CONSTRAINTS = {
    "one": mf.constraint(A, 2.0, 0.3),
    "correlated": mf.constraint([A, B, A + B], [2.0, 300.0, 302.0], np.diag([0.1, 9.0, 16.0]) + 0.01),
    "lognormal": mf.constraint(A, 2.0, 0.2, kind="lognormal"),
    "count": mf.constraint(B, 290, kind="poisson"),
    "auxiliary": AuxiliaryCount(quantity=A.expr, measured=(5.5,), factor=2.5),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_compiled_code_draws_what_numpy_draws(name, monkeypatch):
    def toy_uniform(key_low, key_high, toy_low, toy_high):
        return float(
            toy_uniforms(int(key_low) + (int(key_high) << 32), np.array([toy_low + (toy_high << 32)]))[0]
        )

    monkeypatch.setattr(measured_program.toy_uniform, "run", toy_uniform)
    constraint, toys = CONSTRAINTS[name], np.array([0, 1, 2, 3, 5, 2**33 + 1])
    expected = constraint.draw(VALUES, 17, toys, around_data=False)
    table = MeasuredTable.of(constraint.compiled_draw(VALUES, 17))
    for toy, row in zip(toys.tolist(), expected, strict=True):
        out = np.zeros(len(row))
        draw_measured(table.words, table.numbers, out, toy % 2**32, toy >> 32)
        np.testing.assert_allclose(out, row, rtol=1e-14, atol=1e-14)


def test_normal_numbers_are_scipys():
    p = np.concatenate(
        [2.0 ** -np.arange(1, 55), 1 - 2.0 ** -np.arange(2, 50), np.linspace(0.001, 0.999, 200)]
    )
    np.testing.assert_allclose([normal_quantile(one) for one in p.tolist()], ndtri(p), rtol=4e-15, atol=1e-15)


def test_a_function_of_the_user_is_not_compiled():
    own = mf.constraint((A - 1) ** 2, measured=[A], sample=lambda rng, values: rng.normal())
    assert own.compiled_draw(VALUES, 17) is None
