"""Categories: columns of labels, such as years of data taking, stored as the numbers of the labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.data.sources import described, to_array
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.expr import Quantity
from morefit.model.observable import check_name
from morefit.text.arguments import in_sentences

if TYPE_CHECKING:
    from morefit.data.io.table import Ranged

MAX_LABELS = 1000  # of a column that no category declares: more different texts are not labels
SHOWN = 5  # labels in a message
MISSING = ("NAType", "NaTType")  # of pandas
Other = Literal["error", "drop"]


@dataclass(frozen=True, init=False)
class Category:
    """A column of labels and which there are: text, or whole numbers, which count as their digits.

    Events with another label are an error; with ``other="drop"`` they are left out, as the ``report`` of the dataset says.

    Example: ``mf.Category("year", [2016, 2017])``
    """

    name: str
    labels: tuple[str, ...]
    other: Other

    @in_sentences
    def __init__(self, name: str, labels: Iterable[str | int], *, other: Other = "error") -> None:
        check_name("category", name)
        if other not in ("error", "drop"):
            raise ModelError(f"category '{name}': other must be 'error' or 'drop', got {other!r}")
        if isinstance(labels, Mapping | set | frozenset):
            advice = "; numbers in a column are labels themselves, as in [-1, 1]" * isinstance(
                labels, Mapping
            )
            raise ModelError(f"category '{name}': labels must be a list, got {labels!r}{advice}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "labels", check_labels(name, labels))
        object.__setattr__(self, "other", other)

    @property
    def low(self) -> float:
        """The number of the first label."""
        return 0.0

    @property
    def high(self) -> float:
        """The number of the last label."""
        return len(self.labels) - 1.0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | Number | np.ndarray | Quantity):
            self._refuse()  # a plain False would be a condition that never holds
        if not isinstance(other, Category):
            return NotImplemented
        return (self.name, self.labels, self.other) == (other.name, other.labels, other.other)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse to be part of a formula."""
        numbers = sorted(int(label) for label in self.labels if re.fullmatch("-?[0-9]+", label))
        advice = ""
        if 1 < len(numbers) == len(self.labels):
            observable = f"mf.Observable({self.name!r}, {numbers[0]}, {numbers[-1]})"
            advice = f", or read a tag as numbers, {observable}, and say given=[{self.name}] where a density depends on it"
        raise ModelError(
            f"category '{self.name}': is a column of labels, which formulas cannot have; give a model for each label to"
            f" mf.Simultaneous{advice}"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __rpow__ = __mod__ = __rmod__ = __neg__ = __pos__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _refuse
    __array_ufunc__ = __array_function__ = _refuse

    def __repr__(self) -> str:
        other = f", other={self.other!r}" * (self.other != "error")
        return f"Category({self.name!r}, {list(self.labels)!r}{other})"

    def encode(self, raw: object) -> Array:
        """Return the number of the label of each event, -1 for another label if these are dropped."""
        items, places = distinct(raw)
        counts = np.bincount(places, minlength=len(items))
        texts = texts_of(items, counts)
        numbers = {label: float(k) for k, label in enumerate(self.labels)}
        codes = np.array([numbers.get(text, -1.0) for text in texts], np.float64)
        other = (codes < 0) & (counts > 0)
        if self.other == "error" and other.any():
            unknown = sorted(text for text, wrong in zip(texts, other, strict=True) if wrong)
            raise DataError(
                f"{counts[other].sum()} of {len(places)} events have labels that are not known, {shown(unknown)}; the labels"
                f' are {shown(self.labels)}; add them, or leave such events out with mf.Category(..., other="drop")'
            )
        return codes[places] if len(places) else np.empty(0)


@dataclass(frozen=True, eq=False)
class Labelled:
    """A column of labels as a dataset has it: the number of the label of each event."""

    codes: Array
    labels: tuple[str, ...]

    def decoded(self) -> NDArray[np.str_]:
        """Return the label of each event."""
        return np.array(self.labels, np.str_)[self.codes.astype(np.int64)]


def check_labels(name: str, labels: Iterable[str | int]) -> tuple[str, ...]:
    """Return labels as text, or raise an error for none, for repeated ones and for what are no labels."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ModelError(f"category '{name}': labels must be a list, got {labels!r}")
    each = list(labels)
    texts = [label_text(label) for label in each]
    if wrong := [label for label, text in zip(each, texts, strict=True) if not text]:
        raise ModelError(f"category '{name}': labels must be text or whole numbers, got {wrong[0]!r}")
    known = [text for text in texts if text]
    if not known:
        raise ModelError(f"category '{name}': needs at least one label, got none")
    if repeated := [text for text in dict.fromkeys(known) if known.count(text) > 1]:
        raise ModelError(f"category '{name}': labels must differ, got {shown(repeated)} twice")
    return tuple(known)


def label_text(item: object) -> str | None:
    """Return a label as text, that of a whole number as its digits; None for what is no label."""
    if isinstance(item, str):
        return str(item)
    if isinstance(item, bool | np.bool_):
        return None
    if isinstance(item, Integral) or (isinstance(item, float) and item.is_integer()):
        return str(int(item))
    return None


def distinct(raw: object) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different labels of a column as objects of Python, and which of them each event has."""
    if isinstance(raw, Labelled):
        return list(raw.labels), raw.codes.astype(np.int64)
    array = to_array(raw)
    if array.ndim != 1:
        raise DataError(f"labels must have one dimension, got {described(array)}")
    if array.dtype.kind in "iuf" and not isinstance(array, np.ma.MaskedArray):
        numbers, places = np.unique(array, return_inverse=True)
        return numbers.tolist(), places
    items = array.tolist()  # masked ones become None
    try:
        known = {item: k for k, item in enumerate(dict.fromkeys(items))}
    except TypeError:  # lists
        raise DataError("labels must be text or whole numbers, got lists") from None
    return list(known), np.fromiter(map(known.__getitem__, items), np.int64, len(items))


def texts_of(items: Sequence[Any], counts: NDArray[np.int64]) -> list[str]:
    """Return different labels as text, or raise an error for events without one."""
    missing = sum(int(n) for item, n in zip(items, counts, strict=True) if is_missing(item))
    if missing:
        raise DataError(f"{missing} of {counts.sum()} events have no label; leave them out")
    texts = [label_text(item) for item in items]
    if wrong := [item for item, text in zip(items, texts, strict=True) if text is None]:
        raise DataError(f"labels must be text or whole numbers, got {wrong[0]!r}")
    return [text for text in texts if text is not None]


def is_missing(item: object) -> bool:
    """Return whether a label is none of any kind: None, not a number, or what pandas writes for it."""
    return item is None or type(item).__name__ in MISSING or (isinstance(item, float) and item != item)


def is_text(raw: object) -> bool:
    """Return whether a column is of text."""
    if isinstance(raw, Labelled):
        return True
    try:
        array = to_array(raw)
    except DataError:
        return False
    if array.ndim != 1 or array.dtype.kind not in "UTO":
        return False
    texts = [isinstance(item, str) for item in array.tolist() if not is_missing(item)]
    return all(texts) and bool(texts or array.dtype.kind != "O")


def category_of(name: str, raw: object) -> Category:
    """Return the category of a column of text, with its labels in the order of the alphabet."""
    if isinstance(raw, Labelled):
        return Category(name, raw.labels)
    items, places = distinct(raw)
    labels = sorted(set(texts_of(items, np.bincount(places, minlength=len(items)))))
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"has {len(labels)} different texts, where labels are at most {MAX_LABELS}; convert numbers with"
            " astype(float), or declare them with mf.Category"
        )
    if not labels:
        raise DataError("has no events, and so no labels; declare them with mf.Category")
    return Category(name, labels)


def common_labels(each: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return the labels of several datasets together, or raise an error where a column has labels in some of them only."""
    labels = {}
    for name in dict.fromkeys(name for own in each for name in own):
        if not all(name in own for own in each):
            raise DataError(
                f"dataset: column '{name}': has labels in some datasets and numbers in others; declare it with mf.Category"
                " in all of them"
            )
        labels[name] = tuple(dict.fromkeys(label for own in each for label in own[name]))
    return labels


def without_categories(ranges: list[Ranged]) -> list[Ranged]:
    """Return the observables of a histogram, or raise an error for a category, which has no bins."""
    if wrong := [o.name for o in ranges if isinstance(o, Category)]:
        raise DataError(f"category '{wrong[0]}': has no bins; make a histogram of the events of each label")
    return ranges


def shown(labels: Sequence[str]) -> str:
    """Return the first of some labels for a message."""
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(map(repr, labels[:SHOWN])) + more
