"""``morefit toys`` and ``morefit fc``: studies, what they save and write, and what Ctrl-C leaves of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

import morefit as mf
from morefit.cli import BAD_INPUT, INTERRUPTED, NOT_VALID, VALID, main
from morefit.cli.model_file import load_model
from morefit.text.progress import Bar

# a class of its own, which workers can only unpickle if they have loaded the file
MODEL = """\
from dataclasses import dataclass

import numpy as np
import morefit as mf


@dataclass(frozen=True)
class Falling(mf.Pdf):
    '''An exponential.'''

    x: mf.Observable
    slope: mf.Parameter

    def density(self):
        return np.exp(self.slope * self.x)


x = mf.Observable("x", 0.0, 1.0)
slope = mf.Parameter("slope", -1.0, -20.0, 20.0)
model = Falling(x, slope)
other = mf.Exponential(x, mf.Parameter("rate", -1.0, -20.0, 20.0))
steep, flat = mf.Parameter("n", 100.0, 0.0, 1e4), mf.Parameter("b", 50.0, 0.0, 1e4)
tail = mf.Parameter("tail", -9.0, fixed=True)
extended = mf.Sum([mf.Exponential(x, tail), mf.Uniform(x)], yields=[steep, flat])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with a model and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "model.py").write_text(MODEL)
    mf.generate(load_model("model.py"), 200, seed=1).write("data.npz")
    return tmp_path


def interrupt_after(monkeypatch, what, done):
    """Let Ctrl-C come when so much of a job is done."""

    def press(self, count, description=None):
        if self.what.startswith(what) and count >= done:
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "done", press)


# ------------------------------------------------------------------------------------ toys


def test_toys_show_and_write_what_the_library_finds(folder, capsys):
    options = ["--toys", "200", "--events", "100", "--seed", "3", "--value", "slope=-2"]
    assert main(["toys", "model.py", *options, "--save", "study.npz", "--json", "-"]) == VALID
    said = capsys.readouterr()
    content = json.loads(said.out)
    toys = mf.toy_study(
        load_model("model.py"), toys=200, events=100, seed=3, truth={"slope": -2.0}, progress=False
    )
    saved = mf.ToyResults.load(folder / "study.npz")
    assert np.array_equal(saved.values, toys.values)
    assert "toy study: 200 toys, all valid" in said.err
    assert (content["toys"], content["valid"], content["seed"]) == (200, 200, 3)
    assert content["events"] == {"least": 100, "most": 100, "mean": 100.0}
    found = content["parameters"]["slope"]
    assert found["truth"] == -2.0
    assert found["bias"] == toys.bias("slope")._asdict()
    assert found["pulls"] == toys.pull_summary("slope")._asdict()
    assert found["coverage"]["0.6827"] == toys.coverage("slope")._asdict()
    assert found["mean"] == pytest.approx(np.mean(toys.values))


def test_a_study_that_was_saved_is_extended(folder):
    study = ["toys", "model.py", "--events", "50", "--seed", "1", "--save", "study.npz", "-q"]
    assert main([*study, "--toys", "20"]) == VALID
    assert main([*study, "--toys", "30"]) == VALID
    whole = mf.toy_study(load_model("model.py"), toys=30, events=50, seed=1, progress=False)
    assert np.array_equal(mf.ToyResults.load("study.npz").values, whole.values)


def test_processes_find_what_threads_find(folder):
    study = ["toys", "model.py", "--toys", "40", "--events", "50", "--seed", "1", "-q"]
    assert main([*study, "--workers", "2", "--save", "processes.npz"]) == VALID
    assert main([*study, "--save", "threads.npz"]) == VALID
    one, other = mf.ToyResults.load("processes.npz"), mf.ToyResults.load("threads.npz")
    assert np.array_equal(one.values, other.values)


def test_toys_of_a_model_with_yields_need_no_number_of_events(folder, capsys):
    assert main(["toys", "model.py:extended", "--toys", "50", "--seed", "1", "--json", "s.json"]) == VALID
    content = json.loads((folder / "s.json").read_text())
    assert content["events"]["least"] < content["events"]["mean"] < content["events"]["most"]
    assert set(content["parameters"]) == {"n", "b"}


def test_another_model_is_fitted_and_what_was_not_generated_has_no_truth(folder, capsys):
    study = [
        "toys",
        "model.py",
        "--fit-model",
        "model.py:other",
        "--toys",
        "20",
        "--events",
        "50",
        "--seed",
        "1",
    ]
    assert main([*study, "--json", "s.json"]) == VALID
    found = json.loads((folder / "s.json").read_text())["parameters"]["rate"]
    assert "truth" not in found
    assert np.isfinite(found["mean"])
    assert "not generated" in capsys.readouterr().out
    assert main([*study, "--plot", "pulls.png", "-q"]) == BAD_INPUT
    assert "--plot: pulls need a truth" in capsys.readouterr().err


def test_pulls_are_drawn_in_a_grid(folder):
    files = ["--plot", "pulls.png", "-q"]
    assert main(["toys", "model.py:extended", "--toys", "50", "--seed", "1", *files]) == VALID
    assert (folder / "pulls.png").read_bytes().startswith(b"\x89PNG")


def test_toys_that_fail_count_only_beyond_what_is_allowed(folder, monkeypatch, capsys):
    whole = mf.toy_study(load_model("model.py"), toys=20, events=50, seed=1, progress=False)
    broken = replace(whole, valid=np.arange(20) != 3)
    monkeypatch.setattr(mf, "toy_study", lambda *_, **__: broken)
    study = ["toys", "model.py", "--toys", "20", "--events", "50"]
    assert main(study) == NOT_VALID
    assert "1 NOT VALID (5 %)" in capsys.readouterr().out
    assert main([*study, "--allow-invalid", "0.1"]) == VALID


def test_ctrl_c_shows_and_saves_the_toys_that_are_finished(folder, monkeypatch, capsys):
    interrupt_after(monkeypatch, "toy study", 5000)
    study = ["toys", "model.py", "--toys", "10001", "--events", "20", "--seed", "1", "--save", "s.npz"]
    assert main([*study, "--json", "s.json"]) == INTERRUPTED
    said = capsys.readouterr()
    done = json.loads((folder / "s.json").read_text())["toys"]
    assert 0 < done < 10001
    assert f"toy study: {done} toys" in said.out
    assert "interrupted" in said.err
    assert len(mf.ToyResults.load("s.npz")) == done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py"], "toy study: events is missing; the model predicts no number, as one with yields would"),
        (["model.py", "--events", "9", "--value", "slop=1"],
         "parameter 'slop': not in the model, but in truth; did you mean 'slope'?"),
        (["model.py", "--events", "9", "--start", "slope=99"],
         "parameter 'slope': start must lie in [-20.0, 20.0], got 99.0"),
        (["model.py", "--events", "9", "--save", "no/s.npz"],
         "--save: file 'no/s.npz': there is no folder 'no'; make it first"),
        (["model.py", "--events", "9", "--fit-model", "none.py"], "model 'none.py': does not exist"),
    ],
)  # fmt: skip
def test_bad_input_of_toys_is_said_in_one_line(folder, arguments, message, capsys):
    assert main(["toys", *arguments]) == BAD_INPUT
    assert capsys.readouterr().err.startswith(f"morefit: error: {message}")


# ------------------------------------------------------------------------------------ fc

SCAN = ["fc", "model.py", "data.npz", "--parameter", "slope", "--toys", "60", "--seed", "5"]


def test_fc_shows_and_writes_what_the_library_finds(folder, capsys):
    values = ["--values", "-2:0:6", "--level", "0.8"]
    assert main([*SCAN, *values, "--json", "scan.json", "--plot", "scan.png", "--save", "scan.npz"]) == VALID
    model = load_model("model.py")
    again = mf.intervals.feldman_cousins(
        mf.Likelihood(model, mf.read("data.npz", model.observables)), "slope", np.linspace(-2, 0, 6), toys=60, level=0.8,
        seed=5, progress=False,
    )  # fmt: skip
    content = json.loads((folder / "scan.json").read_text())
    assert content["values"] == again.values.tolist()
    assert content["p"] == again.p_values.tolist()
    assert content["interval"]["low"] == again.interval().low
    assert content["level"] == 0.8
    assert content["accepted"] == again.accepted().tolist()
    assert np.array_equal(mf.intervals.FeldmanCousins.load("scan.npz").t, again.t)
    assert (folder / "scan.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "feldman-cousins of slope: 6 values of 60 toys" in shown
    assert f"80 %: {again.interval()}" in shown


def test_fc_chooses_values_around_the_best_fit(folder):
    assert main([*SCAN, "--toys", "5", "-q", "--json", "scan.json"]) == VALID
    content = json.loads((folder / "scan.json").read_text())
    model = load_model("model.py")
    best = mf.fit(model, mf.read("data.npz", model.observables))
    low, high = (best.values["slope"] + side * best.errors["slope"] for side in (-4, 4))
    assert content["values"] == pytest.approx(np.linspace(low, high, 17).tolist())


def test_fc_on_processes_finds_the_same(folder):
    values = ["--values", "-1.5,-1,-0.5", "-q"]
    assert main([*SCAN, *values, "--json", "threads.json"]) == VALID
    assert main([*SCAN, *values, "--json", "processes.json", "--workers", "2"]) == VALID
    one, other = (json.loads((folder / f).read_text()) for f in ("threads.json", "processes.json"))
    assert one["p"] == other["p"]


def test_ctrl_c_shows_and_saves_the_values_that_are_finished(folder, monkeypatch, capsys):
    interrupt_after(monkeypatch, "feldman_cousins", 120)
    values = ["--values", "-2:0:5", "--save", "scan.npz", "--json", "scan.json"]
    assert main([*SCAN, *values]) == INTERRUPTED
    said = capsys.readouterr()
    done = len(json.loads((folder / "scan.json").read_text())["values"])
    assert 0 < done < 5
    assert f"{done} values of 60 toys" in said.out
    assert "interrupted" in said.err
    assert len(mf.intervals.FeldmanCousins.load("scan.npz")) == done
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert main([*SCAN, *values, "-q"]) == VALID
    assert len(mf.intervals.FeldmanCousins.load("scan.npz")) == 5


def test_fc_does_not_start_from_a_fit_that_is_not_valid(folder, monkeypatch, capsys):
    good = mf.fit
    monkeypatch.setattr(mf, "fit", lambda *a, **k: good(*a, **k, max_calls=1, start={"slope": -9.0}))
    assert main(SCAN) == NOT_VALID
    shown = capsys.readouterr().out
    assert "fit NOT VALID" in shown
    assert "nothing was tested, as the fit to start from is not valid" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parameter", "slop"], "parameter 'slop': not in the model; did you mean 'slope'?"),
        (["--values", "-50:1:3"],
         "feldman_cousins: values of 'slope' must be a list of numbers in [-20.0, 20.0], got -50 to 1"),
        (["--level", "2"], "feldman_cousins: level must lie between 0 and 1, got 2.0"),
    ],
)  # fmt: skip
def test_bad_input_of_fc_is_said_in_one_line(folder, options, message, capsys):
    assert main([*SCAN, *options]) == BAD_INPUT
    assert capsys.readouterr().err == f"morefit: error: {message}\n"


def test_a_parameter_that_is_fixed_cannot_be_tested(folder, capsys):
    text = MODEL.replace("-1.0, -20.0, 20.0)\nmodel", "-1.0, -20.0, 20.0, fixed=True)\nmodel")
    (folder / "model.py").write_text(text)
    assert main(SCAN) == BAD_INPUT
    assert "parameter 'slope': is fixed in the model; let it float" in capsys.readouterr().err
