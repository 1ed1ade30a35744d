"""Models in files of Python: loaded afresh, beside their own modules, with errors that name the line."""

import pickle
import sys

import pytest

import morefit as mf
from morefit.cli.model_file import ModelFile, load_model

GOOD = "import morefit as mf\nmodel = mf.Uniform(mf.Observable('x', 0.0, 1.0))\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return what writes a file into the folder that one is in."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="model.py"):
        (tmp_path / name).write_text(text)
        return name

    return write


def test_a_model_is_loaded(write):
    assert load_model(write(GOOD)).observables[0].name == "x"


def test_another_name_is_chosen_behind_a_colon(write):
    write(GOOD + "wide = mf.Uniform(mf.Observable('y', 0.0, 9.0))\n")
    assert load_model("model.py:wide").observables[0].name == "y"


def test_a_colon_may_be_part_of_a_name(write):
    name = write(GOOD, "fit:v2.py")
    assert ModelFile.named(name).name == "model"
    assert load_model(f"{name}:model").observables[0].name == "x"


def test_a_file_is_read_again_when_it_has_changed_and_leaves_nothing_behind(write, tmp_path):
    load_model(write(GOOD))
    assert load_model(write(GOOD.replace("'x'", "'z'"))).observables[0].name == "z"
    assert [f.name for f in tmp_path.iterdir()] == ["model.py"]


def test_a_file_imports_what_lies_beside_it(write, tmp_path, monkeypatch):
    write("name = 'beside'\n", "shared_names.py")
    write("from shared_names import name\n" + GOOD.replace("'x'", "name"))
    monkeypatch.chdir(tmp_path.parent)
    before = list(sys.path)
    assert load_model(str(tmp_path / "model.py")).observables[0].name == "beside"
    assert sys.path == before
    monkeypatch.delitem(sys.modules, "shared_names")


def test_two_files_of_one_name_are_two_modules(write, tmp_path):
    (tmp_path / "other").mkdir()
    own = GOOD + "class Own(mf.Uniform): pass\nmodel = Own(mf.Observable('x', 0.0, 1.0))\n"
    one, two = load_model(write(own)), load_model(write(own, "other/model.py"))
    for model in (one, two):
        assert type(pickle.loads(pickle.dumps(model))) is type(model)
    assert type(one) is not type(two)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import morefit as mf\n\nmu = mf.Parameter('mu', 7.0, 5.0, 6.0)\n",
         r"model 'model\.py', line 3: parameter 'mu': start must lie in \[5\.0, 6\.0\], got 7\.0$"),
        ("def make():\n    return 1 / 0\n\n\nmodel = make()\n", r"model 'model\.py', line 2: ZeroDivisionError: division by zero$"),
        ("import morfit\n", r"model 'model\.py', line 1: ModuleNotFoundError: No module named 'morfit'$"),
        ("x = 1\nmodel = = 2\n", r"model 'model\.py', line 2: SyntaxError: invalid syntax$"),
        ("if 1:\nx = 2\n", r"model 'model\.py', line 2: IndentationError: expected an indented block"),
        ("import sys\nsys.exit(0)\n", r"model 'model\.py', line 2: must not exit; end the file where the model is complete$"),
        ("raise KeyError\n", r"model 'model\.py', line 1: KeyError$"),
        ("pdf = 3\n", r"model 'model\.py': defines no 'model'; write 'model = mf\.Sum\(\.\.\.\)' or the like$"),
        (GOOD.replace("model =", "pdf = wide ="),
         r"model 'model\.py': defines no 'model'; choose one there is: 'model\.py:pdf', 'model\.py:wide'$"),
        ("model = 3.0\n", r"model 'model\.py': 'model' must be a density \(morefit\.Pdf\), got float; write"),
        ("import morefit as mf\nmodel = mf.Uniform\n", r"'model' must be a density \(morefit\.Pdf\), got ABCMeta; write"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_with_its_line(write, text, message):
    with pytest.raises(mf.ModelError, match=message):
        load_model(write(text))


def test_an_error_in_a_module_beside_names_the_line_that_imports_it(write, monkeypatch):
    write("broken = = 1\n", "broken_names.py")
    with pytest.raises(mf.ModelError, match=r"model 'model\.py', line 2: SyntaxError: invalid syntax"):
        load_model(write("x = 1\nimport broken_names\n"))


def test_a_file_that_is_not_there(write, tmp_path):
    write(GOOD)
    with pytest.raises(mf.ModelError, match=r"model 'modle\.py': does not exist; did you mean 'model\.py'\?"):
        load_model("modle.py")
    with pytest.raises(mf.ModelError, match=r"model '.*': is a folder; name a file of Python in it"):
        load_model(str(tmp_path))


def test_ctrl_c_while_a_file_runs_goes_on(write):
    with pytest.raises(KeyboardInterrupt):
        load_model(write("raise KeyboardInterrupt\n"))


def test_issue_data_in_the_place_of_the_model_are_not_run(tmp_path):
    # this used to run the lines of a table as Python
    path = tmp_path / "data.csv"
    path.write_text("m,w\n5.3,1\n")
    with pytest.raises(
        mf.ModelError, match=r"must be a file of Python that ends in \.py; MODEL\.py comes before DATA"
    ):
        load_model(str(path))
