"""The public face: what is exported, and that it is documented."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import morefit as mf

EXPECTED = [
    "BackendError", "BinnedLikelihood", "BrokenJob", "Category", "Choice", "CompileError", "Convolution", "Cpu", "CrystalBall", "CutReport", "DataError", "Dataset", "Density", "Derived", "Drawing", "Efficiency", "Explanation",
    "Exponential", "FileDataset", "FisherInformation", "FitError", "FitResult", "Gaussian", "LeastSquares", "Likelihood", "ModelError", "MorefitError", "Observable", "OpenCL", "OptionError", "Parameter",
    "Pdf", "Polynomial", "Product", "Restricted", "Simultaneous", "Sum", "TemplateLikelihood", "ToyResults", "Uniform", "Histogram", "histfactory", "histogram_function", "KernelDensity", "Morph", "MomentMorph", "Spline", "devices", "draw", "explain", "fisher_information", "fit", "fit_many", "Constraint", "constraint", "generate",
    *mf.functions.__all__, "functions",
    "acceptance", "Combination", "combine", "intervals", "opaque", "physics", "Plot", "plot", "plots", "read", "shapes", "SWeights", "sweights", "kendall_tau", "toy_study", "where",
]  # fmt: skip
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
ROOT = Path(__file__).parent.parent


def test_public_names_are_exactly_these():
    assert sorted(mf.__all__) == sorted(EXPECTED)


def test_completion_shows_the_public_names_only():
    assert [name for name in dir(mf) if not name.startswith("_")] == sorted(mf.__all__)


def test_wrong_arguments_of_public_functions_are_answered_in_a_sentence():
    """``in_sentences`` of morefit.text.arguments decorates all of them but those of formulas."""
    own = {*mf.functions.__all__, "where", "devices"}
    public = [(mf, set(mf.__all__) - own)] + [
        (getattr(mf, name), getattr(mf, name).__all__)
        for name in ("acceptance", "histfactory", "intervals", "plots")
    ]
    functions = {name: getattr(room, name) for room, names in public for name in names}
    assert [n for n, f in functions.items() if inspect.isfunction(f) and not hasattr(f, "__wrapped__")] == []
    made = [
        mf.BinnedLikelihood,
        mf.Category,
        mf.Dataset,
        mf.FileDataset,
        mf.LeastSquares,
        mf.Likelihood,
        mf.Observable,
        mf.Parameter,
    ]
    wrapped = [kind for kind in made if any(hasattr(f, "__wrapped__") for f in (kind.__init__, kind.__new__))]
    assert wrapped == made


@pytest.mark.parametrize("room", ["acceptance", "functions", "histfactory", "intervals", "plots", "shapes"])
def test_completion_of_rooms_shows_their_public_names_only(room):
    module = getattr(mf, room)
    assert dir(module) == sorted(module.__all__)


def test_public_names_come_once():
    assert len(set(mf.__all__)) == len(mf.__all__)


@pytest.mark.parametrize("name", mf.__all__)
def test_public_name_is_there_and_documented(name):
    found = getattr(mf, name)
    own = vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__
    assert own
    assert own.strip()
    assert not own.startswith(f"{name}("), "a dataclass made this text up"


@pytest.mark.parametrize("name", [n for n in mf.__all__ if inspect.isclass(getattr(mf, n))])
def test_public_methods_are_documented(name):
    kind = getattr(mf, name)
    missing = [
        f"{name}.{method}"
        for method, member in inspect.getmembers(kind)
        if not method.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and (getattr(member, "__module__", "") or "").startswith("morefit")
        and not inspect.getdoc(member)
    ]
    assert not missing


def test_errors_are_one_family():
    errors = [getattr(mf, n) for n in mf.__all__ if n.endswith("Error")]
    assert len(errors) == 7
    assert all(issubclass(e, mf.MorefitError) for e in errors)
    assert issubclass(mf.ModelError, ValueError) and issubclass(mf.OptionError, ValueError)
    assert issubclass(mf.FitError, RuntimeError)


def installed_version():
    """Return the version of the distribution that the package was imported from; None for a checkout on the path."""
    imported = Path(mf.__file__).resolve()
    found = metadata.distributions(name="morefit")
    return next(
        (d.version for d in found if d.locate_file("morefit/__init__.py").resolve() == imported), None
    )


def test_the_version_is_written_once_in_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    source = (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE) == [mf.__version__]
    assert settings["project"]["dynamic"] == ["version"]
    assert "version" not in settings["project"]


def test_the_installed_version_is_that_of_the_package():
    assert installed_version() in (None, mf.__version__)


def test_the_version_is_one_that_installers_understand():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", mf.__version__)


def test_importing_writes_nothing():
    code = "import morefit"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert found.stdout == found.stderr == ""
