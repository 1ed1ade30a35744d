"""The command line."""

import json

import pytest

from morefit.cli import BAD_INPUT, VALID, main


def test_demo_fits_and_shows_the_time_of_each_stage(capsys):
    assert main(["demo", "--events", "2000", "--seed", "3", "--threads", "1"]) == VALID
    shown = capsys.readouterr().out
    assert "fit valid" in shown
    for stage in ("generate", "derive", "compile", "minimise", "hessian"):
        assert stage in shown


def test_demo_writes_its_result(tmp_path, capsys):
    assert main(["demo", "--events", "1000", "--json", str(tmp_path / "result.json")]) == VALID
    assert "fsig" in json.loads((tmp_path / "result.json").read_text())["names"]


@pytest.mark.parametrize("options", [["--events", "0"], ["--threads", "0"]])
def test_bad_input_has_an_exit_code_of_its_own(options, capsys):
    assert main(["demo", *options]) == BAD_INPUT
    assert "morefit: " in capsys.readouterr().err


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--help"])
    assert "example: morefit demo" in capsys.readouterr().out
