"""What is imported when: by ``import morefit`` next to nothing, by a first fit what it needs."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import morefit as mf
from morefit.targets.cpu.host import appearance

SOURCE = Path(mf.__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
LAZY = [
    path
    for path in sorted(SOURCE.rglob("__init__.py"))
    if "import_when_used(" in path.read_text(encoding="utf-8")
]
FIRST_FIT = """
import morefit as mf
x, mu, sigma = mf.Observable("x", -5.0, 5.0), mf.Parameter("mu", 0.1, -1.0, 1.0), mf.Parameter("sigma", 1.0, 0.5, 2.0)
model = mf.Gaussian(x, mu, sigma)
result = mf.fit(model, mf.generate(model, 1_000, seed=1))
assert result.valid and result.values["mu"] and result.errors["mu"]
"""
SELDOM_NEEDED = (
    "iminuit",
    "scipy", "rich", "pandas", "matplotlib", "mplhep", "mpmath", "pyopencl", "uproot", "pyarrow", "hist", "numba",
    "distributed", "concurrent.futures", "multiprocessing", "importlib.metadata", "email", "html", "difflib", "csv",
    "numpy.ma", "numpy.polynomial", "numpy.random", "secrets",
    "morefit.cli", "morefit.inspect", "morefit.intervals", "morefit.jobs", "morefit.plots", "morefit.toys",
    "morefit.targets.opencl", "morefit.targets.reference", "morefit.data.io", "morefit.data.reading",
    "morefit.records.archive", "morefit.minimise.text", "morefit.minimise.derived", "morefit.expr.show.dot",
)  # fmt: skip


WRITERS = (  # of texts that are compiled: what another process compiled needs none
    "morefit.kernel.statements", "morefit.kernel.read_program", "morefit.targets.cpu.llvm", "morefit.targets.cpu.program",
    "morefit.targets.cpu.vecmath", "morefit.targets.cpu.counts", "morefit.minimise.minuit", "morefit.kernel.build",
    "morefit.kernel.assemble", "morefit.kernel.families", "morefit.rewrite.stages", "morefit.rewrite.forms",
)  # fmt: skip


def package_of(path):
    return ".".join(["morefit", *path.parent.relative_to(SOURCE).parts])


def modules_after(code, **environment):
    """Return the names of all modules of a fresh process that ran some code."""
    code += "\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT | environment,
    )
    return set(done.stdout.split())


def imports_for_type_checkers(block):
    """Return what a branch imports, as a set of names by module."""
    return {node.module: {name.name for name in node.names} for node in block.body}


def imports_when_used(block):
    """Return the table of a branch, as a set of names by module."""
    call = block.orelse[-1].value
    assert call.func.id == "import_when_used"
    return {module: set(names) for module, names in ast.literal_eval(call.args[1]).items()}


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_names_imported_when_used_are_those_that_type_checkers_see(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert imports_when_used(block) == imports_for_type_checkers(block)


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_no_name_imported_when_used_is_that_of_another_module_of_the_package(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    table = imports_when_used(block)
    names = set().union(*table.values()) - table.get(package_of(path), set())
    modules = {one.stem for one in path.parent.iterdir()}
    assert names.isdisjoint(modules)


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_every_name_of_a_lazy_package_can_be_imported(path):
    package = importlib.import_module(package_of(path))
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_a_name_that_is_not_there_is_an_ordinary_error():
    with pytest.raises(AttributeError, match=r"^module 'morefit' has no attribute '__genrate__'$"):
        _ = mf.__genrate__
    with pytest.raises(AttributeError, match=r"^module 'morefit' has no attribute 'nothing'$"):
        _ = mf.nothing  # which is like no other name


# these used to be bare errors, as were the rooms'
@pytest.mark.parametrize(
    ("room", "name", "hint"),
    [
        ("", "genrate", "did you mean mf.generate?"),
        ("", "Gauss", "did you mean mf.Gaussian?"),
        ("", "RooChebychev", "did you mean mf.shapes.Chebyshev?"),
        ("", "Space", "write mf.Observable(name, low, high)"),
        ("", "UnbinnedNLL", "write mf.Likelihood(model, data)"),
        ("", "exp", "write np.exp, which takes observables and parameters too"),
        (
            "",
            "hypotest",
            "write mf.intervals.upper_limit(likelihood, parameter), or mf.intervals.discovery(likelihood, parameter)",
        ),
        ("plots", "pull", "did you mean mf.plots.pulls?"),
        ("intervals", "UpperLimits", "did you mean mf.intervals.UpperLimit?"),
        ("shapes", "DSCB", "did you mean mf.shapes.DoubleCrystalBall?"),
    ],
)
def test_a_name_of_another_package_or_a_misspelt_one_leads_to_the_right_one(room, name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(getattr(mf, room) if room else mf, name)
    assert str(caught.value).endswith(f"'{name}'; {hint}")


@pytest.mark.parametrize("name", ["shapes.Voigt", "intervals.profile", "shapes.KstarMuMu"])
def test_a_name_of_a_room_is_said_to_be_there(name):
    last = name.split(".")[1]
    with pytest.raises(
        AttributeError, match=f"module 'morefit' has no attribute '{last}'; it is morefit.{name}$"
    ):
        getattr(mf, last)


def test_importing_loads_nothing_but_the_errors():
    loaded = modules_after("import morefit")
    assert {m for m in loaded if m.startswith("morefit")} == {
        "morefit",
        "morefit.errors",
        "morefit.garbage",
        "morefit.lazy",
    }
    assert not loaded & {"numpy", "llvmlite", "iminuit", *SELDOM_NEEDED}


def test_a_first_fit_loads_what_it_needs(tmp_path):
    first, second = (modules_after(FIRST_FIT, MOREFIT_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert not first & set(SELDOM_NEEDED)
    assert not second & {*SELDOM_NEEDED, *WRITERS}
    if appearance() is not None:  # else LLVM is asked for the processor
        assert "llvmlite.binding" not in second


def test_a_first_study_loads_what_it_needs():
    study = "mf.toy_study(model, toys=1, events=1_000, seed=1, progress=False)"
    loaded = modules_after(FIRST_FIT.partition("result =")[0] + study)
    needed = {name for name in SELDOM_NEEDED if name.startswith("morefit.")}
    assert not loaded & ({*SELDOM_NEEDED, "statistics", "logging", "morefit.jobs.digest"} - needed)


USES = (
    "model.pdf([0.5])", "model.cdf(0.5)", "model.integrate({'x': (0.0, 1.0)})", "print(model)", "mf.shapes.Gaussian",
    "mf.physics.KstarMuMu", "mf.explain(model)", "mf.devices()", "mf.fisher_information(model, 100)",
    "sum(mf.Likelihood(model, {'x': [0.5]}) for _ in range(2))", "mf.intervals.feldman_cousins_poisson(3, 1.0)",
    "mf.where(x > 0, 1, 2)", "mf.Dataset({'x': [0.5]}).to_hist", "mf.plots.project(model, {'x': [0.5]}, x)",
)  # fmt: skip
IN_COPIES = """
import os, sys, traceback
for use in sys.argv[1:]:
    if os.fork() == 0:
        try:
            exec(use)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        print("failed as the first use:", use, file=sys.stderr, flush=True)
        os._exit(1)
    os.wait()
"""


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs copies of a process, which take less time than new ones"
)
def test_each_use_works_as_the_first_in_a_process():
    """Nothing relies on a module that something else has imported; ``model.pdf`` used to."""
    code = FIRST_FIT.partition("result =")[0] + IN_COPIES
    done = subprocess.run(
        [sys.executable, "-c", code, *USES], capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    assert "failed" not in done.stderr, done.stderr


def test_a_star_import_has_all_public_names():
    names = {}
    exec("from morefit import *", names)
    assert set(mf.__all__) <= set(names)
