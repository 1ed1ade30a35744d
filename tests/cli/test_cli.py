"""The command line as a whole: help, exit codes, errors, and the commands that need no model."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import morefit as mf
from morefit.cli import BAD_INPUT, INTERRUPTED, NOT_VALID, VALID, main
from morefit.cli.entry import COMMANDS, join_negative, make_parser
from morefit.resources import available_cores
from morefit.targets.opencl.discover import DeviceInfo

ROOT = Path(__file__).parents[2]
MODEL = """\
import morefit as mf

x = mf.Observable("x", 0.0, 10.0)
mu = mf.Parameter("mu", 5.0, 0.0, 10.0)
sigma = mf.Parameter("sigma", 1.0, 0.1, 5.0)
model = mf.Gaussian(x, mu, sigma)
"""


def exits(arguments):
    """Run a command line that argparse refuses, or answers itself; return its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    return stopped.value.code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


# ------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_help_has_examples_and_exit_codes(command, capsys):
    assert exits([command.name, "--help"]) == VALID
    shown = capsys.readouterr().out
    assert f"examples:\n  morefit {command.name}" in shown
    assert "exit codes:\n  0 " in shown


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_every_example_is_one_that_the_parser_takes(command, capsys):
    for line in command.examples.strip().splitlines():
        example = line.partition("     (")[0].partition(" > ")[0] if "'" not in line else line
        words = shlex.split(example)
        assert words[0] == "morefit"
        options = make_parser().parse_args(join_negative(words[1:]))
        assert options.run is command.run


def test_help_lists_every_command(capsys):
    assert exits(["--help"]) == VALID
    shown = capsys.readouterr().out
    assert all(f"    {command.name} " in shown for command in COMMANDS)


def test_no_command_at_all_shows_the_help_and_is_bad_input(capsys):
    assert main([]) == BAD_INPUT
    assert "commands:" in capsys.readouterr().err


def test_version(capsys):
    assert exits(["--version"]) == VALID
    assert capsys.readouterr().out == f"morefit {mf.__version__}\n"


def test_help_imports_nothing_slow():
    heavy = ("rich", "matplotlib", "scipy", "pyopencl", "uproot", "pyarrow")
    code = f"""
import sys
from morefit.cli import main
try:
    main(["fit", "--help"])
except SystemExit:
    print([m for m in {heavy!r} if m in sys.modules])
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert found.stdout.splitlines()[-1] == "[]"


# ------------------------------------------------------------------------------------ the entry point


def test_the_entry_point_of_the_package_is_main():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, name = settings["project"]["scripts"]["morefit"].split(":")
    assert getattr(import_module(module), name) is main


def test_a_process_fits_and_ends_with_the_code(folder):
    mf.generate(mf.cli.model_file.load_model("model.py"), 500, seed=1).write("data.npz")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-m", "morefit.cli", "fit", "model.py", "data.npz"]
    good = subprocess.run([*command, "--json", "-"], capture_output=True, text=True, env=environment)
    assert good.returncode == VALID, good.stderr
    assert json.loads(good.stdout)["valid"] is True
    assert "fit valid" in good.stderr
    bad = subprocess.run([*command, "--max-calls", "1"], capture_output=True, text=True, env=environment)
    assert bad.returncode == NOT_VALID
    assert "NOT VALID" in bad.stdout
    assert bad.stderr == ""


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fitt"], "argument COMMAND: invalid choice: 'fitt'"),
        (["fit", "model.py"], "the following arguments are required: DATA; see 'morefit fit --help'"),
        (["fit", "model.py", "a.npz", "--star", "mu=1"], "unrecognized arguments: --star mu=1; did you mean '--start'?; see 'morefit fit --help'"),
        (["demo", "--events", "0"], "argument --events: must be a whole number from 1 on, got '0'"),
        (["demo", "--events", "1.5"], "argument --events: must be a whole number from 1 on, got '1.5'"),
        (["demo", "--events", "many"], "argument --events: must be a number, got 'many'"),
        (["demo", "--threads", "0"], "argument --threads: must be a whole number from 1 on, got '0'"),
        (["fit", "m.py", "d", "--start", "mu"], "argument --start: must be NAME=VALUE, several with commas, got 'mu'"),
        (["fit", "m.py", "d", "--start", "mu=a"], "argument --start: must be a number, got 'a'"),
        (["fit", "m.py", "d", "--start", "mu=nan"], "argument --start: must be finite, got 'nan'"),
        (["fit", "m.py", "d", "--fix", "=1"], "argument --fix: must be NAME or NAME=VALUE, several with commas, got '=1'"),
        (["fit", "m.py", "d", "--limits", "mu=1"], "argument --limits: must be NAME=LOW:HIGH, got 'mu=1'"),
        (["fit", "--minos", "m.py", "d"], "argument --minos: must be names of parameters, got 'm.py'; write it after the files"),
        (["fc", "m.py", "d"], "the following arguments are required: --parameter"),
        (["fc", "m.py", "d", "--parameter", "a", "--values", "0:1"],
         "argument --values: must be LOW:HIGH:POINTS or numbers with commas, got '0:1'"),
        (["fc", "m.py", "d", "--parameter", "a", "--values", "1:-1:5"],
         "argument --values: LOW must be below HIGH, and POINTS at least 2, got '1:-1:5'"),
        (["toys", "m.py", "--allow-invalid", "2"], "argument --allow-invalid: must lie in [0, 1], got '2'"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_in_one_line(arguments, message, capsys):
    assert exits(arguments) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith(f"morefit: error: {message}")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend", "gpu"], "backend 'gpu': not known; use one of 'auto', 'cpu', 'opencl', 'reference'"),
        (["--backend", "opencl", "--threads", "2"],
         "backend 'opencl': --threads is for the CPU, got 2; leave one of them out"),
        (["--backend", "cpu:0"], "backend 'cpu:0': only opencl has several devices; see 'morefit devices'"),
        (["--json", "no/such.json"], "--json: file 'no/such.json': there is no folder 'no'; make it first"),
        (["--json", "."], "--json: file '.': is a folder; name a file in it"),
        (["--plot", "-"], "--plot: needs the name of a file, got '-'"),
        (["--plot", "a.xyz"], "--plot: the name of a file must end in .pdf, .png, .svg, .eps, .jpg, .jpeg, .webp, got 'a.xyz'"),
        (["--plot", "a.png", "--json", "a.png"], "named by two options; each needs its own"),
        (["--log"], "--log and --bins: change the plot; pass --plot FILE too"),  # did nothing
        (["--seed", "-1"], "seed"),
    ],
)  # fmt: skip
def test_bad_input_has_an_exit_code_of_its_own(folder, options, message, capsys):
    assert main(["demo", "--events", "100", *options]) == BAD_INPUT
    said = capsys.readouterr()
    assert said.err.startswith("morefit: error: ")
    assert message in said.err
    assert said.out == ""


def test_a_missing_matplotlib_is_noticed_before_the_work(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert main(["demo", "--plot", "a.pdf"]) == BAD_INPUT
    said = capsys.readouterr()
    assert said.err == 'morefit: error: plot: matplotlib is not installed; pip install "morefit[plot]"\n'
    assert said.out == ""


@pytest.mark.parametrize("way", ["option", "environment"])
def test_a_traceback_is_shown_to_those_who_ask(way, monkeypatch, capsys):
    assert main(["demo", "--backend", "gpu"]) == BAD_INPUT
    assert "Traceback" not in capsys.readouterr().err
    if way == "environment":
        monkeypatch.setenv("MOREFIT_TRACEBACK", "1")
    assert main(["demo", "--backend", "gpu", *(["--traceback"] if way == "option" else [])]) == BAD_INPUT
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "BackendError" in said
    assert said.splitlines()[-1].startswith("morefit: error: backend 'gpu'")


def test_an_error_that_nobody_foresaw_keeps_its_traceback(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(mf, "generate", fail)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main(["demo"])


def test_a_file_that_may_not_be_read_is_bad_input(monkeypatch, capsys):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "secret.npz")

    monkeypatch.setattr(mf, "generate", refuse)
    assert main(["demo"]) == BAD_INPUT
    assert capsys.readouterr().err == "morefit: error: file 'secret.npz': Permission denied\n"


def test_ctrl_c_has_an_exit_code_of_its_own(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mf, "generate", interrupt)
    assert main(["demo"]) == INTERRUPTED
    assert capsys.readouterr().err == "morefit: interrupted\n"


def test_values_that_begin_with_a_minus_are_no_option():
    assert join_negative(["fc", "--values", "-1:1:5", "-q"]) == ["fc", "--values=-1:1:5", "-q"]
    assert join_negative(["--values", "-.5,1"]) == ["--values=-.5,1"]
    assert join_negative(["--values", "--json", "-"]) == ["--values", "--json", "-"]


# ------------------------------------------------------------------------------------ demo


def test_demo_fits_and_shows_the_time_of_each_stage(capsys):
    assert main(["demo", "--events", "2e3", "--seed", "3", "--threads", "1"]) == VALID
    shown = capsys.readouterr().out
    assert "fit valid" in shown
    for stage in ("generate", "derive", "compile", "minimise", "hessian"):
        assert stage in shown


def test_demo_writes_result_and_plot(folder, capsys):
    files = ["--json", "result.json", "--plot", "mass.png", "--bins", "20", "--log"]
    assert main(["demo", "--events", "1000", *files]) == VALID
    result = mf.FitResult.from_json(folder / "result.json")
    model = mf.cli.mass_model()
    again = mf.fit(model, mf.generate(model, 1000, seed=1))
    assert dict(result.values) == dict(again.values)
    assert (folder / "mass.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.endswith("wrote result.json\nwrote mass.png\n")


# ------------------------------------------------------------------------------------ devices


def test_devices_lists_the_cpu_with_cores_and_vectors(capsys):
    assert main(["devices"]) == VALID
    shown = capsys.readouterr().out
    assert "--backend" in shown
    assert f"{available_cores()} cores, vectors of" in shown


def test_devices_without_pyopencl_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert main(["devices"]) == VALID
    shown = capsys.readouterr().out
    assert "always" in shown
    assert "pyopencl is not installed; pip install 'morefit[opencl]'" in shown


def test_devices_marks_what_auto_takes(monkeypatch, capsys):
    gpu = DeviceInfo(0, 1, "Big", "Vendor", "GPU", 2**37, True, True)
    old = DeviceInfo(1, 0, "Old", "Vendor", "GPU", 2**30, False)
    monkeypatch.setattr(mf, "devices", lambda: (gpu, old))
    monkeypatch.setenv("COLUMNS", "140")
    assert main(["devices"]) == VALID
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "small work" in lines["cpu"]
    assert "Big (Vendor)" in lines["opencl:0:1"]
    assert "128.0 GB, double precision" in lines["opencl:0:1"]
    assert "large work" in lines["opencl:0:1"]
    assert "NO double precision" in lines["opencl:1:0"]
    assert "work" not in lines["opencl:1:0"]


def test_devices_as_json(monkeypatch, capsys):
    gpu = DeviceInfo(0, 1, "Big", "Vendor", "GPU", 2**37, True, True)
    monkeypatch.setattr(mf, "devices", lambda: (gpu,))
    assert main(["devices", "--json", "-"]) == VALID
    content = json.loads(capsys.readouterr().out)
    assert content["format"] == "morefit devices"
    assert content["opencl"][0]["name"] == "Big"
    assert content["cpu"]["cores"] >= 1


def test_the_package_is_run_as_a_module():
    done = subprocess.run([sys.executable, "-m", "morefit", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "morefit")
