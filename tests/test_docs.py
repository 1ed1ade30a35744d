"""Documents are executed, so they cannot rot: blocks of Python, what they print, links, the map, the examples."""

import contextlib
import doctest
import importlib.util
import io
import re
import subprocess
import sys
import types
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [page for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))) if page.exists()]
TEXTS = [*PAGES, *sorted((DOCS / "decisions").glob("*.md")), ROOT / "CHANGELOG.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# "<!-- skip: reason -->" right before a block keeps it from being run
FENCE = re.compile(
    r"(?:<!-- skip:(?P<skip>[^\n]*)-->\n\n?)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: what kind, where its first line is, and why it is not to be run, if it is not."""

    kind: str
    text: str
    line: int
    skip: str | None


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["kind"], found["text"], text.count("\n", 0, found.start("text")) + 1, found["skip"])
        for found in FENCE.finditer(text)
    ]


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look for it there
    monkeypatch.chdir(tmp_path)  # blocks may write files
    printed = ""
    for block in blocks(page):
        if block.kind == "python" and block.skip is None:
            printed = run_block(block, page, module)
        elif block.kind in ("output", "sample"):
            check_output(block, printed, page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_skipped_block_states_its_reason(page):
    without = [block.line for block in blocks(page) if block.skip is not None and not block.skip.strip()]
    assert not without, f"blocks at lines {without} are skipped without a reason"


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_example_runs(example):
    command = [sys.executable, "-W", "error", str(example), "--events", "2000"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "valid" in found.stdout
    assert "NOT VALID" not in found.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


def test_the_map_is_current():
    spec = importlib.util.spec_from_file_location("make_map", DOCS / "make_map.py")
    make_map = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_map)
    current = (DOCS / "map.md").read_text(encoding="utf-8")
    assert current == make_map.make_map(), "run python docs/make_map.py"


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


def test_a_block_that_prints_something_else_is_seen():
    page = ROOT / "page.md"
    wrong = Block("output", "a line\n...\n", 3, None)
    with pytest.raises(pytest.fail.Exception, match=r"page\.md, line 3"):
        check_output(wrong, "another line\n", page)


def test_a_sample_may_differ_in_order_and_numbers_but_not_in_words():
    sample = Block("sample", "b0*exp(m) + ...\n", 1, None)
    assert says_the_same(sample, "b2 + exp(m)*b7\n")
    assert not says_the_same(sample, "b2 + sin(m)*b7\n")
