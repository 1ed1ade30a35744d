"""A density is a file: folders are listed, and what their files define is public."""

import sys

import pytest

import morefit as mf
from morefit.model.listing import densities_in

SOURCE = '''
from dataclasses import dataclass
import numpy as np
from morefit.model import Gaussian, Observable, Pdf

@dataclass(frozen=True, eq=False)
class Wave(Pdf):
    """A wave."""
    x: Observable
    def density(self):
        return 2 + np.cos(self.x)

class _Hidden(Wave):
    pass

def helper():
    pass
'''


def test_a_density_in_a_new_file_is_found_without_a_list(tmp_path, monkeypatch):
    folder = tmp_path / "own_shapes"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "wave.py").write_text(SOURCE)
    (folder / "note.txt").write_text("no module")
    monkeypatch.syspath_prepend(str(tmp_path))
    densities = densities_in("own_shapes", [str(folder)])
    assert list(densities) == ["Wave"]  # not what it imports, nor what is private
    model = densities["Wave"](mf.Observable("x", 0.0, 1.0))
    assert mf.generate(model, 10, seed=1)["x"].size == 10
    for name in ("own_shapes.wave", "own_shapes"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("namespace", [mf.shapes, mf.physics])
def test_a_namespace_shows_its_densities_only(namespace):
    assert dir(namespace) == namespace.__all__ == sorted(namespace.__all__)
    assert all(issubclass(getattr(namespace, name), mf.Pdf) for name in namespace.__all__)


def test_densities_of_a_first_fit_are_those_of_the_namespace():
    short = ["CrystalBall", "Exponential", "Gaussian", "Polynomial", "Uniform"]
    assert all(getattr(mf, name) is getattr(mf.shapes, name) for name in short)


def test_densities_of_physics_processes_are_listed_with_all_others():
    assert set(mf.physics.__all__) <= set(mf.shapes.__all__)
    assert all(getattr(mf.physics, name) is getattr(mf.shapes, name) for name in mf.physics.__all__)


def test_a_density_that_no_file_defines_is_an_error():
    with pytest.raises(AttributeError, match="shapes: no density 'Gausian'; did you mean 'Gaussian'"):
        _ = mf.shapes.Gausian
    with pytest.raises(AttributeError, match=r"physics: no density 'Gaussian'; it is mf.shapes.Gaussian"):
        _ = mf.physics.Gaussian
    with pytest.raises(AttributeError, match="physics: no density 'Kstar'; did you mean 'KstarMuMu'"):
        _ = mf.physics.Kstar
