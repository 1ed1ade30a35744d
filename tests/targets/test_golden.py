"""Kernels as text: what a change does to them is there to be read. MOREFIT_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import sums_of

from morefit.targets.reference.run import Reference

FOLDER = Path(__file__).parents[1] / "golden"
KERNELS = {
    "kernel_mass_value": ("mass", "value"),
    "kernel_mass_hessian": ("mass", "hessian"),
    "kernel_kstarmumu_value": ("kstarmumu", "value"),
}
PRINT = """
import sys
sys.path[:0] = sys.argv[1:3]
from launching import sums_of
from morefit.targets.reference.run import Reference
print(sums_of("mass", "hessian", False, Reference()).program.kernel)
"""


@pytest.mark.parametrize("file", KERNELS)
def test_kernel_is_as_recorded(file):
    text = f"{sums_of(*KERNELS[file], False, Reference()).program.kernel}\n"
    path = FOLDER / f"{file}.txt"
    if os.environ.get("MOREFIT_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text(), (
        "if the change is meant, set MOREFIT_UPDATE_GOLDEN=1 and look at the diff"
    )


def test_every_process_writes_the_same_kernel():
    """The cache on disk depends on it, so no order may come from the hash of a text."""
    here = Path(__file__).parent
    texts = {
        subprocess.run(
            [sys.executable, "-c", PRINT, str(here), str(here.parent)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert texts == {f"{sums_of('mass', 'hessian', False, Reference()).program.kernel}\n"}
