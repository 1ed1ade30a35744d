"""The report of a cut: numbers of events before and after, and why the others were removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from morefit.dataclass import dataclass


@dataclass(frozen=True)
class CutReport:
    """Numbers of events before and after a cut, and of those outside the range of each observable.

    An event outside the ranges of two observables counts for both. With a condition, ``failed`` events did not pass
    it, and only those that did are tested for ranges. For events read from files, ``files`` has a report for each.
    """

    total: int
    kept: int
    outside: dict[str, int]
    failed: int = 0
    condition: str = ""
    files: dict[str, CutReport] = field(default_factory=dict)
    not_numbers: dict[str, int] = field(default_factory=dict)  # of those outside

    @property
    def summary(self) -> str:
        """The numbers of all events together, in one line."""
        if self.kept == self.total:
            return f"kept all {self.total} events"
        causes = [f"{self.failed} did not pass {self.condition!r}"] if self.failed else []
        for name, count in self.outside.items():
            nan = self.not_numbers.get(name)
            none = f" ({nan} of them not a number)" if nan else ""
            causes += [f"{count} outside the range of '{name}'{none}"] if count else []
        return f"kept {self.kept} of {self.total} events: {', '.join(causes)}"

    def __str__(self) -> str:
        each = [f"  {name}: {report}" for name, report in self.files.items()]
        return "\n".join([self.summary, *(each if len(each) > 1 else [])])


def add_reports(files: Mapping[str, CutReport]) -> CutReport:
    """Return the sum of the reports of several files with the same cut."""
    first, *_ = files.values()
    outside = {name: sum(r.outside[name] for r in files.values()) for name in first.outside}
    total, kept, failed = (
        sum(numbers) for numbers in zip(*((r.total, r.kept, r.failed) for r in files.values()), strict=True)
    )
    return CutReport(
        total=total, kept=kept, outside=outside, failed=failed, condition=first.condition, files=dict(files)
    )
