"""``morefit fit`` and ``morefit explain``: what they show and write agrees with what the library returns."""

import json
from argparse import Namespace

import numpy as np
import pytest

import morefit as mf
from morefit.cli import BAD_INPUT, NOT_VALID, VALID, main
from morefit.cli.files import beside
from morefit.cli.model_file import load_model
from morefit.cli.options import assignments, backend_of, fixed_parameters, limits, names, points

MODEL = """\
import morefit as mf

x = mf.Observable("x", 0.0, 10.0)
mu = mf.Parameter("mu", 5.0, 0.0, 10.0)
sigma = mf.Parameter("sigma", 1.0, 0.1, 5.0)
model = mf.Gaussian(x, mu, sigma)
"""
TWO = """\
import morefit as mf

x, y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.0, 1.0)
slope = mf.Parameter("slope", -1.0, -9.0, 9.0)
model = mf.Product([mf.Gaussian(x, mf.Parameter("mu", 5.0, 0.0, 10.0), mf.Parameter("sigma", 1.0, 0.1, 5.0)),
                    mf.Exponential(y, slope)])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with a model and data, some of them outside the range."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "model.py").write_text(MODEL)
    rng = np.random.default_rng(1)
    columns = {
        "x": rng.normal(5.0, 2.0, 600),
        "pt": rng.exponential(2.0, 600),
        "w": rng.normal(1.0, 0.2, 600),
    }
    for number, half in enumerate((slice(0, 300), slice(300, 600))):
        mf.Dataset({name: column[half] for name, column in columns.items()}).write(f"run{number}.npz")
    return tmp_path


def read(**options):
    return mf.read("run*.npz", load_model("model.py").observables, **options)


def fitted(folder, *options):
    """Run a fit and read the result that it writes."""
    code = main(["fit", "model.py", "run*.npz", "--json", "result.json", *options])
    assert code == VALID
    return mf.FitResult.from_json(folder / "result.json")


# ------------------------------------------------------------------------------------ fit


def test_fit_finds_what_the_library_finds(folder, capsys):
    result = fitted(folder)
    again = mf.fit(load_model("model.py"), read())
    assert dict(result.values) == dict(again.values)
    assert dict(result.errors) == dict(again.errors)
    shown = capsys.readouterr().out
    assert f"data: {read().report.summary}" in shown
    assert f"fit valid: nll {again.nll:.3f}" in shown
    assert "correlation" in shown


def test_json_says_what_it_was_made_by(folder, capsys):
    assert main(["fit", "model.py", "run0.npz", "--json", "-"]) == VALID
    said = capsys.readouterr()
    content = json.loads(said.out)
    assert content["format"] == "morefit fit result"
    assert content["origin"] == {
        "morefit": mf.__version__,
        "command": ["fit", "model.py", "run0.npz", "--json", "-"],
    }
    assert "fit valid" in said.err


def test_quiet_shows_nothing(folder, capsys):
    fitted(folder, "--quiet")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_several_files_a_cut_and_weights(folder):
    result = fitted(folder, "--cut", "pt > 1 & x < 9", "--weight", "w", "--errors", "sumw2")
    data = read(cut="pt > 1 & x < 9", weights="w")
    again = mf.fit(load_model("model.py"), data, errors="sumw2")
    assert result.events == len(data)
    assert result.errors_from == "sumw2"
    assert dict(result.errors) == dict(again.errors)


def test_parameters_start_stay_and_end_where_told(folder, capsys):
    result = fitted(folder, "--start", "mu=4", "--fix", "sigma=1.5", "--limits", "mu=3:6")
    again = mf.fit(
        load_model("model.py"), read(), start={"mu": 4}, fixed={"sigma": 1.5}, limits={"mu": (3, 6)}
    )
    assert dict(result.values) == dict(again.values)
    assert result.floating == ("mu",)
    assert result.limits["mu"] == (3.0, 6.0)
    assert "fixed" in capsys.readouterr().out


def test_fixed_without_a_value_stays_at_its_start(folder):
    assert fitted(folder, "--fix", "sigma", "--start", "sigma=2").values["sigma"] == 2.0


@pytest.mark.parametrize(
    ("option", "expected"), [("--minos", {"mu", "sigma"}), ("--minos=mu", {"mu"})]
)  # fmt: skip
def test_minos_of_all_or_some(folder, option, expected):
    assert set(fitted(folder, option).minos) == expected


def test_minimiser_strategy_and_tolerance_are_passed_on(folder):
    assert fitted(folder, "--minimiser", "newton").minimiser == "newton"
    strict = fitted(folder, "--strategy", "1", "--tolerance", "0.001")
    again = mf.fit(load_model("model.py"), read(), strategy=1, tolerance=0.001)
    assert dict(strict.values) == dict(again.values)


def test_a_fit_that_is_not_valid_is_shown_and_written(folder, capsys):
    assert main(["fit", "model.py", "run*.npz", "--max-calls", "1", "--json", "bad.json"]) == NOT_VALID
    assert "fit NOT VALID" in capsys.readouterr().out
    assert not mf.FitResult.from_json(folder / "bad.json").valid


def test_another_model_of_the_file_is_chosen_by_name(folder):
    (folder / "model.py").write_text(
        f"{MODEL}other = mf.Gaussian(x, mu, mf.Parameter('width', 2.0, 0.1, 5.0))\n"
    )
    assert main(["fit", "model.py:other", "run0.npz", "--json", "result.json"]) == VALID
    assert "width" in mf.FitResult.from_json(folder / "result.json").names


def test_one_observable_gives_one_picture(folder):
    fitted(folder, "--plot", "fit.pdf", "--bins", "10", "--log")
    assert (folder / "fit.pdf").read_bytes().startswith(b"%PDF")


def test_several_observables_give_a_picture_each(folder, capsys):
    (folder / "two.py").write_text(TWO)
    mf.generate(load_model("two.py"), 300, seed=1).write("two.npz")
    assert main(["fit", "two.py", "two.npz", "--plot", "fit.png"]) == VALID
    assert {f.name for f in folder.glob("*.png")} == {"fit-x.png", "fit-y.png"}
    assert "wrote fit-y.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py", "none.npz"], "file 'none.npz': does not exist; "),
        (["model.py", "run0.npz", "run*.npz"], "file 'run0.npz': given twice; its events would count twice"),
        (["model.py", "run0.npz", "--cut", "eta > 1"], "no column 'eta'"),
        (["model.py", "run0.npz", "--cut", "x > 99"], "dataset: has no events; there is nothing to fit"),
        (["model.py", "run0.npz", "--tree", "t"], "tree"),
        (["model.py", "run0.npz", "--start", "nu=1"], "parameter 'nu': not in the model; did you mean 'mu'?"),
        (["model.py", "run0.npz", "--minos=nu"], "fit: minos needs floating parameters, got 'nu'"),
        (["model.py", "run0.npz", "--start", "mu=20"], "parameter 'mu': start must lie in [0.0, 10.0], got 20.0"),
    ],
)  # fmt: skip
def test_bad_input_is_said_in_one_line(folder, arguments, message, capsys):
    assert main(["fit", *arguments]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith("morefit: error: ")
    assert message in said
    assert said.count("\n") == 1


# ------------------------------------------------------------------------------------ explain


def test_explain_shows_the_graph_the_cut_and_the_kernels(folder, capsys):
    assert main(["explain", "model.py"]) == VALID
    shown = capsys.readouterr().out
    for title in (
        "graph",
        "cut (of the value)",
        "kernel for value",
        "kernel for value, gradient and Hessian",
    ):
        assert f"{title}\n" in shown
    assert "ns/event" not in shown


def test_explain_with_data_times_an_evaluation(folder, capsys):
    assert main(["explain", "model.py", "--data", "run0.npz", "run1.npz", "--order", "1"]) == VALID
    shown = capsys.readouterr().out
    assert "ns/event" in shown
    assert "kernel for value and gradient\n" in shown
    assert "kernel for value\n" not in shown


@pytest.mark.parametrize("order", [0, 2])
def test_explain_shows_the_source_and_nothing_else(folder, order, capsys):
    assert main(["explain", "model.py", "--source", "--order", str(order)]) == VALID
    assert capsys.readouterr().out == mf.explain(load_model("model.py")).source(order) + "\n"


def test_explain_as_json(folder, capsys):
    assert main(["explain", "model.py", "--data", "run0.npz", "--json", "-"]) == VALID
    content = json.loads(capsys.readouterr().out)
    found = mf.explain(load_model("model.py"))
    assert content["format"] == "morefit explanation"
    assert [kernel["source"] for kernel in content["kernels"]] == [found.source(order) for order in range(3)]
    assert all(kernel["run seconds"] > 0 for kernel in content["kernels"])
    assert content["graphs"]["simplified"]["nodes"] > 5


def test_explain_draws_the_graph(folder):
    assert main(["explain", "model.py", "--draw", "graph.dot", "--stage", "after", "-q"]) == VALID
    assert (folder / "graph.dot").read_text() == str(mf.draw(load_model("model.py"), stage="after"))


def test_explain_refuses_a_drawing_of_no_known_kind(folder, capsys):
    assert main(["explain", "model.py", "--draw", "graph.xyz", "-q"]) == BAD_INPUT
    assert "drawing: the name of a file must end in .dot, .gv, .svg" in capsys.readouterr().err


# ------------------------------------------------------------------------------------ what options mean


def test_assignments_and_their_kin():
    assert assignments("mu=5.28, sigma=-1e-3") == {"mu": 5.28, "sigma": -1e-3}
    assert fixed_parameters("mu=5,sigma") == {"mu": 5.0, "sigma": None}
    assert limits("mu=5:6,sigma=0:") == {"mu": (5.0, 6.0), "sigma": (0.0, np.inf)}
    assert names("mu, sigma") == ("mu", "sigma")


def test_points_by_ends_or_one_by_one():
    assert points("0:1:5") == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert points("-0.5,2") == (-0.5, 2.0)
    assert points("3") == (3.0,)


def chosen(backend, threads=None, workers=None):
    return backend_of(Namespace(backend=backend, threads=threads, workers=workers))


def test_backends_by_name_number_and_threads():
    assert chosen("auto") == "auto"
    assert chosen("cpu") == mf.Cpu()
    assert chosen("auto", 3) == mf.Cpu(threads=3)
    assert chosen("cpu", workers=2) == mf.Cpu(threads=1)
    assert chosen("cpu", 3, workers=2) == mf.Cpu(threads=3)
    assert chosen("opencl") == mf.OpenCL()
    assert chosen("opencl:0:1") == mf.OpenCL(platform=0, device=1)
    assert chosen("opencl:2") == mf.OpenCL(device=2)
    assert chosen("opencl:H200") == mf.OpenCL(device="H200")


def test_names_of_observables_are_safe_in_names_of_files(tmp_path):
    assert beside(tmp_path / "a.b.pdf", "q/2:x") == tmp_path / "a.b-q_2_x.pdf"
