"""The command line with readers that leave, streams that are closed, full disks, and files that cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace

import pytest

import morefit as mf
from morefit.cli import BAD_INPUT, VALID, main
from morefit.cli.options import PIPE_CLOSED
from morefit.cli.screen import Screen

MODEL = """\
import morefit as mf
x = mf.Observable("x", 0.0, 1.0)
model = mf.Exponential(x, mf.Parameter("slope", -1.0, -20.0, 20.0))
"""
TOYS = ("toys", "model.py", "--toys", "20", "--events", "50", "--seed", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def start(*arguments, **streams):
    return subprocess.Popen(
        [sys.executable, "-m", "morefit.cli", *arguments], stderr=subprocess.PIPE, **streams
    )


def with_reader_gone(*arguments):
    """Run a command whose output nobody reads; return its exit code and what it complains about."""
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*arguments, stdout=writer)
    os.close(writer)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors.decode()


def test_a_reader_that_leaves_is_no_error_and_files_are_written(folder):
    """This used to end in code 1, without the files."""
    assert with_reader_gone(*TOYS, "--json", "toys.json", "--plot", "pulls.pdf") == (PIPE_CLOSED, "")
    assert (folder / "toys.json").stat().st_size and (folder / "pulls.pdf").stat().st_size


def test_a_reader_of_json_that_leaves_is_no_error_and_figures_are_drawn(folder):
    assert with_reader_gone(*TOYS, "-q", "--json", "-", "--plot", "pulls.pdf") == (PIPE_CLOSED, "")
    assert (folder / "pulls.pdf").stat().st_size


MORE = pytest.mark.exhaustive  # a process each


@pytest.mark.parametrize(
    "arguments",
    [("toys", "--help"), pytest.param(("--help",), marks=MORE), pytest.param(("--version",), marks=MORE)],
)
def test_a_reader_of_help_that_leaves_is_no_error(folder, arguments):
    code, errors = with_reader_gone(*arguments)
    assert code in (PIPE_CLOSED, VALID) and errors == ""  # argparse passes over it where output has no buffer


def test_versions_of_rich_that_raise_are_understood(monkeypatch, capfd):
    options = Namespace(reader_gone=False)
    screen = Screen(options, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115

    def broken(self, *objects, **settings):
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console.print", broken)
    screen.print("hello")
    assert options.reader_gone and screen.quiet
    screen.file.close()


def test_a_full_disk_behind_the_output_is_said(folder):
    with open("/dev/full", "wb") as full:
        process = start(*TOYS, stdout=full)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (
        BAD_INPUT,
        b"morefit: error: standard output: No space left on device\n",
    )


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [
        pytest.param("1>&-", TOYS, VALID, marks=MORE), pytest.param("2>&-", TOYS, VALID, marks=MORE),
        ("1>&- 2>&-", TOYS, VALID), ("1>&-", ("--help",), VALID),
        ("2>&-", ("nonsense",), BAD_INPUT), ("1>&- 2>&-", ("fit", "model.py", "none.csv"), BAD_INPUT),
    ],
)  # fmt: skip
def test_streams_may_be_closed_from_the_start(folder, closed, arguments, code):
    command = f'exec "$0" -m morefit.cli "$@" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *arguments], capture_output=True, timeout=120
    )
    assert done.returncode == code and b"Traceback" not in done.stderr


def test_what_a_terminal_cannot_show_is_spelt(folder):
    (folder / "model.py").write_text(MODEL.replace('"slope"', '"sl\u00f6pe"'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "morefit.cli", *TOYS], capture_output=True, timeout=120,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert done.returncode == VALID and b"sl\\xf6pe" in done.stdout


ABSURD = [
    (
        ("toys", "model.py", "--toys", "1e15", "--events", "10"),
        "results of 1e+15 toys need about 56 PB of memory",
    ),
    (("toys", "model.py", "--toys", "1e300", "--events", "10"), "EB of memory"),
    (("toys", "model.py", "--events", "1e15"), "1e+15 events need about 8 PB of memory"),
    (("demo", "--events", "1e15"), "generate: 1e+15 events need about 8 PB of memory"),
    (("demo", "--threads", "1e9"), "backend 'cpu': threads must be at most 4096, got 1000000000"),
]
REFUSED = [
    (("fit", "model.py", "a.csv", "--tolerance", "-1"), "argument --tolerance: must be above 0, got '-1'"),
    (
        ("fit", "model.py", "a.csv", "--max-calls", "1e15"),
        "argument --max-calls: must be at most 2147483647, got '1e15'",
    ),
    (("demo", "--bins", "1e12", "--plot", "a.pdf"), "argument --bins: must be at most 1000000, got '1e12'"),
    (("toys", "model.py", "--workers", "1e15"), "argument --workers: must be at most 10000, got '1e15'"),
    (
        ("fc", "model.py", "a.csv", "--parameter", "slope", "--values", "0:1:1e12"),
        "must be at most 100000, got '1e12'",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), ABSURD)
def test_absurd_sizes_are_bad_input(folder, capsys, arguments, message):
    """These used to end in tracebacks."""
    assert main(arguments) == BAD_INPUT
    errors = capsys.readouterr().err
    assert message in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_absurd_options_are_refused_by_their_names(folder, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == BAD_INPUT and message in capsys.readouterr().err


def test_a_lack_of_memory_is_said_in_one_line(folder, capsys, monkeypatch):
    def too_much(*args, **options):
        raise MemoryError

    monkeypatch.setattr(mf, "toy_study", too_much)
    assert main(TOYS) == BAD_INPUT
    assert (
        capsys.readouterr().err
        == "morefit: error: there is not enough memory for this; ask for less at once\n"
    )


@pytest.mark.parametrize("option", ["--json", "--plot", "--save"])
def test_outputs_that_are_no_plain_files_are_refused_before_the_work(folder, capsys, option):
    os.mkfifo(folder / "pipe.pdf")
    assert main([*TOYS, option, "pipe.pdf"]) == BAD_INPUT
    assert f"{option}: file 'pipe.pdf': is not a plain file but a pipe" in capsys.readouterr().err


def test_each_of_several_figures_is_looked_at_before_the_work(folder, capsys):
    text = MODEL.replace("model = ", "y = mf.Observable('y', 0.0, 1.0)\none = ")
    (folder / "model.py").write_text(f"{text}model = mf.Product([one, mf.Uniform(y)])\n")
    (folder / "fit-y.pdf").mkdir()
    assert main(["fit", "model.py", "nothing.csv", "--plot", "fit.pdf"]) == BAD_INPUT
    assert "--plot: file 'fit-y.pdf': is a folder; name a file in it" in capsys.readouterr().err


def test_what_a_broken_study_finished_is_shown(folder, capsys, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("morefit.records.output.os.fsync", full)
    assert main([*TOYS, "--save", "study.npz"]) == BAD_INPUT
    shown = capsys.readouterr()
    assert shown.out.startswith("toy study: 20 toys, all valid")
    assert "No space left on device; make room; 20 of 20 toys are finished" in shown.err


def test_a_terminal_of_no_columns_has_the_usual_width(monkeypatch, capsys):
    # this used to print nothing at all
    monkeypatch.setenv("COLUMNS", "0")
    Screen(Namespace(reader_gone=False)).print("a line")
    assert capsys.readouterr().out == "a line\n"
