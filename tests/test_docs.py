"""Documents are executed, so they cannot rot: blocks of Python, what they print, links, the map, the examples."""

import contextlib
import doctest
import importlib.util
import io
import re
import runpy
import subprocess
import sys
import types
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import morefit as mf

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [page for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))) if page.exists()]
TEXTS = [*PAGES, *sorted((DOCS / "decisions").glob("*.md")), ROOT / "CHANGELOG.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# "<!-- skip: reason -->" right before a block keeps it from being run, "<!-- needs: name -->" where that is missing
FENCE = re.compile(
    r"(?:<!-- (?P<note>skip|needs):(?P<reason>[^\n]*)-->\n\n?)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: what kind, where its first line is, why it is not to be run, if it is not, and what it needs."""

    kind: str
    text: str
    line: int
    skip: str | None = None
    needs: str | None = None


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["kind"],
            found["text"],
            text.count("\n", 0, found.start("text")) + 1,
            **({found["note"]: found["reason"].strip()} if found["note"] else {}),
        )
        for found in FENCE.finditer(text)
    ]


def has_opencl():
    try:
        return any(device.double for device in mf.devices())
    except mf.BackendError:
        return False


# what a block may need, and whether it is there
def has_module(name):
    return importlib.util.find_spec(name) is not None


NEEDS = {"opencl": has_opencl, "dask": lambda: has_module("distributed")}
NEEDS |= {name: partial(has_module, name) for name in ("arviz", "dynesty", "emcee", "hepstats")}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def run_block(block, page, module):
    """Run one block as if it stood alone at its lines of the page; return what it prints."""
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, vars(module))
    return printed.getvalue()


def says_the_same(block, printed):
    """Compare an output word by word, ``...`` standing for anything; of a sample only which words it has, how often."""
    if block.kind == "sample":
        return words(block.text) <= words(printed)
    return doctest.OutputChecker().check_output(block.text, printed, LOOSE)


def words(text):
    """Count words and numbers; numbered names lose their numbers, which change with the order of terms."""
    found = re.findall(r"[A-Za-z_]\w*|\d[\d.]*", text)
    return Counter(word.rstrip("0123456789") or word for word in found)


def check_output(block, printed, page):
    if not says_the_same(block, printed):
        where = f"{name_of(page)}, line {block.line}"
        pytest.fail(f"{where}: the block before printed\n{printed}\nand the page says\n{block.text}")


def run_page(page, module):
    """Run the blocks of a page and compare what they print; return what some of them need that is not there."""
    printed, missing = "", set()
    for block in blocks(page):
        if block.kind == "python" and block.needs is not None and not NEEDS[block.needs]():
            missing.add(block.needs)
            printed = None
        elif block.kind == "python" and block.skip is None:
            printed = run_block(block, page, module)
        elif block.kind in ("output", "sample") and printed is not None:
            check_output(block, printed, page)
    return missing


# what Dask leaves to the garbage collector, which conftest.py runs for these pages, is no failure of a page
WITH_DASK = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


def use_threads_of_dask(monkeypatch):
    """Let the workers of pages be threads: tests of studies and spread data have processes, which take seconds to start."""
    import distributed

    threads = partial(distributed.LocalCluster, processes=False)
    monkeypatch.setattr(distributed, "LocalCluster", threads)


def uses_dask(page):
    return any(block.needs == "dask" for block in blocks(page))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[WITH_DASK] * uses_dask(page)) for page in PAGES], ids=name_of
)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look for it there
    monkeypatch.chdir(tmp_path)  # blocks may write files
    if uses_dask(page) and NEEDS["dask"]():
        use_threads_of_dask(monkeypatch)
    missing = run_page(page, module)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # pyplot warns when many pages leave figures open
    if missing:
        pytest.skip(f"blocks that need {', '.join(sorted(missing))} were left out; all others are right")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_skipped_block_states_its_reason(page):
    without = [block.line for block in blocks(page) if block.skip == ""]
    assert not without, f"blocks at lines {without} are skipped without a reason"


def run_example(example):
    """Return what an example prints: in a process of its own if it starts others, which load it."""
    if "ProcessPoolExecutor" in example.read_text(encoding="utf-8"):
        command = [sys.executable, "-W", "error", str(example), "--events", "2000"]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sys, "argv", [str(example), "--events", "2000"])
        patch.chdir(ROOT)
        runpy.run_path(str(example), run_name="__main__")
    return printed.getvalue()


# that of a cluster has a test of its own
@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.stem != "cluster_toys"], ids=name_of)
def test_example_runs(example):
    printed = run_example(example)
    assert "valid" in printed
    assert not [words for words in ("NOT VALID", "FAILED", "OTHER BITS") if words in printed]


@pytest.mark.slow
def test_the_example_of_a_cluster_runs_with_dask(tmp_path):
    """That a study resumes is tested in tests/toys."""
    pytest.importorskip("distributed", reason="needs the extra 'dask'")
    example, save = str(ROOT / "examples" / "cluster_toys.py"), str(tmp_path / "toys.npz")
    options = ["--events", "200", "--toys", "60", "--executor", "dask", "--workers", "1", "--save", save]
    command = [sys.executable, "-W", "error", example, *options]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "60 toys, all valid" in found.stdout
    assert "the same bits" in found.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("name", ["api", "map", "shapes"])
def test_a_page_that_is_made_from_docstrings_is_current(name):
    spec = importlib.util.spec_from_file_location(f"make_{name}", DOCS / f"make_{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    current = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert current == getattr(script, f"make_{name}")(), f"run python docs/make_{name}.py"


def prose(page):
    """Return a page without its blocks, in which brackets mean other things."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_relative_links_point_to_files(page):
    targets = [t.partition("#")[0] for t in LINK.findall(prose(page)) if "://" not in t]
    missing = [t for t in targets if t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_into_a_page_name_one_of_its_headings(page):
    missing = []
    for target in LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        if anchor and "://" not in target and anchor not in headings(page.parent / path if path else page):
            missing.append(target)
    assert not missing


def headings(page):
    """Return the anchors of a page, as they are made from headings."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_listed_in_the_index():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in DOCS.glob("*.md") if page.name != "README.md"]
    assert [name for name in pages if f"({name})" not in index] == []


def test_every_example_is_listed_in_the_index():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert [e.name for e in EXAMPLES if f"(../examples/{e.name})" not in index] == []


def test_every_decision_is_listed_in_the_index():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    records = sorted((DOCS / "decisions").glob("*.md"))
    assert records
    assert [r.name for r in records if f"(decisions/{r.name})" not in index] == []


def test_decisions_are_numbered_without_gaps():
    numbers = [int(r.name[:4]) for r in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_link_with_a_wrong_target_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](nowhere.md) [b](#one-thing) [c](page.md#other)\n```text\n[d](x)\n```\n")
    assert LINK.findall(prose(page)) == ["nowhere.md", "#one-thing", "page.md#other"]
    assert headings(page) == {"one-thing"}


def test_blocks_know_what_is_said_before_them(tmp_path):
    page = tmp_path / "page.md"
    fence = "```python\n1\n```\n"
    page.write_text(
        f"<!-- skip: takes hours -->\n\n{fence}<!-- needs: opencl -->\n{fence}{fence}<!-- skip: -->\n{fence}"
    )
    assert [(b.skip, b.needs) for b in blocks(page)] == [
        ("takes hours", None),
        (None, "opencl"),
        (None, None),
        ("", None),
    ]


def test_only_blocks_that_need_what_is_missing_are_left_out(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    blocks_of = (
        "```python\na = 1\n```\n<!-- needs: dask -->\n```python\na = 2\n```\n```output\nnothing\n```\n"
    )
    page.write_text(f"{blocks_of}```python\nprint(a)\n```\n```output\n1\n```\n")
    monkeypatch.setitem(NEEDS, "dask", lambda: False)
    assert run_page(page, types.ModuleType("page")) == {"dask"}


def test_a_block_that_prints_something_else_is_seen():
    page = ROOT / "page.md"
    wrong = Block("output", "a line\n...\n", 3)
    with pytest.raises(pytest.fail.Exception, match=r"page\.md, line 3"):
        check_output(wrong, "another line\n", page)


def test_a_sample_may_differ_in_order_and_numbers_but_not_in_words():
    sample = Block("sample", "b0*exp(m) + ...\n", 1)
    assert says_the_same(sample, "b2 + exp(m)*b7\n")
    assert not says_the_same(sample, "b2 + sin(m)*b7\n")
