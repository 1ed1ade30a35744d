"""The page on the command line: its commands run, and print what it says."""

import doctest
import shlex

import pytest

import morefit as mf
from morefit.cli import VALID, main
from morefit.cli.entry import COMMANDS
from morefit.cli.model_file import load_model
from test_docs import DOCS, LOOSE, blocks

PAGE = DOCS / "command-line.md"


def commands(block):
    """Return the lines of a block that call morefit, as lists of words."""
    lines = [shlex.split(line, comments=True) for line in block.text.replace("\\\n", " ").splitlines()]
    return [words[1:] for words in lines if words[:1] == ["morefit"]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with the files that the page speaks of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    source = next(block.text for block in blocks(PAGE) if block.kind == "python")
    (tmp_path / "model.py").write_text(source)
    mf.generate(load_model("model.py"), 5_000, seed=1).write("data.npz")
    return tmp_path


def test_commands_of_the_page_run_and_print_what_it_says(folder, capsys):
    shown, compared = "", 0
    for block in blocks(PAGE):
        if block.kind == "sh":
            codes = [main(words) for words in commands(block)]
            assert codes == [VALID] * len(codes), block.text
            shown = capsys.readouterr().out
        elif block.kind == "text" and shown:
            if not doctest.OutputChecker().check_output(block.text, shown, LOOSE):
                pytest.fail(f"line {block.line}: printed\n{shown}\nand the page says\n{block.text}")
            compared += 1
    assert compared == 3
    assert {"fit.pdf", "fit.json", "pulls.pdf", "scan.pdf", "graph.dot"} <= {f.name for f in folder.iterdir()}


def test_the_error_on_the_page_is_what_a_wrong_start_gives(folder, capsys):
    source = (folder / "model.py").read_text()
    (folder / "model.py").write_text(source.replace("5.28, 5.0", "7.28, 5.0"))
    assert main(["fit", "model.py", "data.npz"]) == 2
    said = next(block.text for block in blocks(PAGE) if block.kind == "text")
    assert capsys.readouterr().err == said


def test_the_page_names_every_command():
    text = PAGE.read_text()
    assert [c.name for c in COMMANDS if f"| `morefit {c.name}" not in text] == []
