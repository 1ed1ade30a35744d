"""The decorator ``dataclass`` of the standard library, with methods that are not compiled when a class is made.

The standard library compiles up to six methods of each class from text, which took a fifth of a first fit. Here ``__init__`` is
compiled after a few uses, which most classes of a process never have, and the other methods need no text.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """Return a class with the methods that its fields determine, or a decorator that does so."""
        return complete(cls, **options) if cls is not None else lambda cls: complete(cls, **options)


def complete(
    cls: Any,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
) -> type:
    """Add fields and methods to a class, but for those that it defines itself."""
    # which compares derived classes with their bases, and compiles what makes them frozen
    inherits = frozen and any("__dataclass_fields__" in vars(base) for base in cls.__mro__[1:])
    dataclasses.dataclass(cls, init=False, repr=False, eq=False, frozen=inherits, kw_only=kw_only)
    made = cls.__dataclass_params__
    made.init, made.repr, made.eq, made.frozen = init, repr, eq, frozen
    own = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": Compiled(cls)} if init else {}
    if repr:
        methods["__repr__"] = repr_of([one.name for one in own if one.repr])
    if eq:
        methods |= comparison(tuple(one.name for one in own if one.compare), hashed=frozen)
    if frozen and not inherits:
        methods |= refusals(cls, {one.name for one in own})
    explicit = vars(cls)
    for name in [name for name in methods if explicit.get(name) is None]:
        setattr(cls, name, methods[name])
    return cls  # type: ignore[no-any-return]


FEW = 4  # instances of a class: for more it pays to compile what makes them


class Compiled:
    """Stands for the ``__init__`` of a class, which is compiled when its signature is needed, or after a few instances."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.uses = 0

    def __get__(self, instance: Any, kind: Any = None) -> Callable[..., None]:
        self.uses += 1
        # who looks for a signature has no instance, or passes the class
        if isinstance(instance, self.owner) and self.uses <= FEW:
            return partial(self.fill, instance)
        return self.compiled().__get__(instance, kind)  # type: ignore[no-any-return]

    def compiled(self) -> Any:
        init = compiled_init(self.owner)
        type.__setattr__(self.owner, "__init__", init)
        return init

    def fill(self, instance: Any, *values: Any, **named: Any) -> None:
        """Set the fields of an instance; calls that Python would refuse are left to it."""
        own = dataclasses.fields(self.owner)
        places = [one.name for one in own if one.init and not one.kw_only]
        contents = named | dict(zip(places, values, strict=False))
        known = {one.name for one in own if one.init}
        needed = {
            one.name for one in own if one.default is MISSING and one.default_factory is MISSING
        } & known
        if len(contents) < len(named) + len(values) or not needed <= contents.keys() <= known:
            self.compiled()(instance, *values, **named)
            return
        store = object.__setattr__ if self.owner.__dataclass_params__.frozen else setattr
        for one in own:
            if one.name in contents:
                store(instance, one.name, contents[one.name])
            elif one.default_factory is not MISSING:
                store(instance, one.name, one.default_factory())
            elif one.init:
                store(instance, one.name, one.default)
        if hasattr(self.owner, "__post_init__"):
            instance.__post_init__()


class Factory:
    """The default of an argument whose value is made by each call."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = Factory()


def compiled_init(owner: Any) -> Callable[..., None]:
    """Write and compile the ``__init__`` of a class."""
    own = dataclasses.fields(owner)
    arguments = [one for one in own if one.init and not one.kw_only]
    by_name = [one for one in own if one.init and one.kw_only]
    known: dict[str, Any] = {"_factory": FACTORY, "_set": object.__setattr__}
    for one in own:
        if one.default_factory is not MISSING:
            known[f"_make_{one.name}"] = one.default_factory
        elif one.default is not MISSING:
            known[f"_default_{one.name}"] = one.default
    heads = [*map(argument, arguments), *(["*"] if by_name else []), *map(argument, by_name)]
    store = "_set(self, '{0}', {1})" if owner.__dataclass_params__.frozen else "self.{0} = {1}"
    lines = [store.format(one.name, value) for one in own if (value := content(one))]
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "".join(f"  {line}\n" for line in lines or ["pass"])
    text = f"def make({', '.join(known)}):\n def __init__({', '.join(['self', *heads])}):\n{body} return __init__"
    scope: dict[str, Any] = {}
    exec(text, vars(sys.modules[owner.__module__]), scope)
    init = scope["make"](**known)
    init.__qualname__ = f"{owner.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in (*arguments, *by_name)} | {"return": None}
    return init  # type: ignore[no-any-return]


def argument(one: Field[Any]) -> str:
    """Write an argument with its default."""
    if one.default_factory is not MISSING:
        return f"{one.name}=_factory"
    return one.name if one.default is MISSING else f"{one.name}=_default_{one.name}"


def content(one: Field[Any]) -> str:
    """Write what a field is set to; empty if it is not set."""
    if one.default_factory is MISSING:
        return one.name if one.init else ""
    made = f"_make_{one.name}()"
    return f"{made} if {one.name} is _factory else {one.name}" if one.init else made


def repr_of(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr("...")
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def comparison(names: tuple[str, ...], *, hashed: bool) -> dict[str, Any]:
    """Return how instances of one class are compared; those that may change have no hash."""

    def few(self: Any) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in names)

    contents: Callable[[Any], tuple[Any, ...]] = attrgetter(*names) if len(names) > 1 else few

    def __eq__(self: Any, other: object) -> Any:
        return contents(self) == contents(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(contents(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if hashed else None}


def refusals(owner: Any, names: set[str]) -> dict[str, Any]:
    """Return what refuses to change fields, and attributes of instances of the class itself."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is owner or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(owner, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is owner or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(owner, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
