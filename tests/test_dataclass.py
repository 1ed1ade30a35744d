"""The decorator of morefit makes the classes that the one of the standard library makes."""

import ast
import copy
import dataclasses
import inspect
from pathlib import Path
from typing import ClassVar

import pytest

import morefit as mf
from morefit import dataclass as module
from morefit.dataclass import FEW, Compiled, dataclass

SOURCE = Path(mf.__file__).parent
OPTIONS = (
    {}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}, {"frozen": True, "kw_only": True},
    {"frozen": True, "repr": False}, {"frozen": True, "init": False},
)  # fmt: skip


def made_by(decorator, **options):
    """Return two classes, the second derived from the first, made by a decorator."""

    @decorator(**options)
    class Base:
        """A class."""

        shared: ClassVar[int] = 3
        first: int
        rest: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=4, repr=False, compare=False)
        state: dict[str, int] = dataclasses.field(init=False, default_factory=dict)

    @decorator(**options)
    class Derived(Base):
        """Another one."""

        last: str = "last"

        def __post_init__(self):
            self.state["sum"] = self.first + len(self.rest)

    return Base, Derived


def outcome(action):
    """Return what an action returns, or its error, as text."""
    try:
        return str(action())
    except Exception as error:
        return f"{type(error)} {error}"


ACTIONS = (
    lambda kind: inspect.signature(kind), lambda kind: kind(first=1), lambda kind: vars(kind(first=1, rest=[2])),
    lambda kind: kind(), lambda kind: kind(1, [2], 5, 6, 7), lambda kind: kind(first=1, other=2),
    lambda kind: kind(first=1) == kind(first=1), lambda kind: kind(first=1) == kind(first=2),
    lambda kind: kind(first=1, hidden=1) == kind(first=1), lambda kind: kind(first=1) == 1,
    lambda kind: kind.__hash__ is None, lambda kind: len({hash(one) for one in [kind(first=1, rest=()), kind(first=1, rest=())]}),
    lambda kind: setattr(kind(first=1), "first", 2), lambda kind: setattr(kind(first=1), "other", 2),
    lambda kind: delattr(kind(first=1), "first"), lambda kind: dataclasses.replace(kind(first=1, rest=[3]), first=2),
    lambda kind: [one.name for one in dataclasses.fields(kind)], lambda kind: dataclasses.asdict(kind(first=1)),
    lambda kind: kind.__match_args__, lambda kind: kind(first=1).rest is kind(first=1).rest,
    lambda kind: setattr(type("Plain", (kind,), {})(first=1), "first", 2),
    lambda kind: vars(type("Plain", (kind,), {})(first=1)), lambda kind: copy.copy(kind(first=1)) == kind(first=1),
)  # fmt: skip


@pytest.mark.parametrize("few", [0, FEW])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_behave_as_those_of_the_standard_library(options, few, monkeypatch):
    monkeypatch.setattr(module, "FEW", few)
    for k, action in enumerate(ACTIONS):
        ours, theirs = made_by(dataclass, **options), made_by(dataclasses.dataclass, **options)
        for mine, standard in zip(ours, theirs, strict=True):
            results = [outcome(lambda a=action, c=kind: a(c)) for kind in (mine, standard)]
            names = [text.replace("made_by.<locals>.", "").partition(" at 0x")[0] for text in results]
            assert names[0] == names[1], k


def test_methods_that_a_class_defines_stay():
    @dataclass(frozen=True)
    class Own:
        number: int

        def __repr__(self):
            return "own"

        def __hash__(self):
            return 7

    assert repr(Own(1)) == "own" and hash(Own(1)) == 7 and Own(1) == Own(1)


def test_a_text_that_contains_itself_ends():
    @dataclass
    class Node:
        next: object = None

    node = Node()
    node.next = node
    assert repr(node).endswith(".Node(next=...)")


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5, 6, 7, 8)])
def test_nothing_is_compiled_before_it_pays_or_a_call_is_wrong(arguments):
    base, _ = made_by(dataclass, frozen=True)
    for _ in range(FEW):
        base(1)
        assert isinstance(vars(base)["__init__"], Compiled)
    base(1)
    assert inspect.isfunction(vars(base)["__init__"])
    base, _ = made_by(dataclass, frozen=True)
    with pytest.raises(TypeError):
        base(*arguments)
    assert inspect.isfunction(vars(base)["__init__"])


def test_densities_can_be_derived_from_by_the_decorator_of_the_standard_library():
    @dataclasses.dataclass(frozen=True)
    class Wide(mf.Gaussian):
        factor: float = 2.0

    x = mf.Observable("x", 0.0, 1.0)
    wide = Wide(x, 0.5, 0.1)
    assert wide.factor == 2.0 and wide.x is x
    with pytest.raises(dataclasses.FrozenInstanceError):
        wide.factor = 3.0


def test_every_module_uses_it():
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    used = {
        name
        for name, text in texts
        if "dataclasses" in text  # to parse them all takes a second
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if "dataclass" in {one.name for one in node.names}
    }
    assert used == {Path(module.__file__).name}
