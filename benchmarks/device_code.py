"""Look at what NVIDIA's compiler makes of the sums of toys: ``python benchmarks/device_code.py`` writes JSON and a table.

No GPU is needed: the texts in OpenCL C are compiled as CUDA by the same optimiser and assembler, from pip, for the chip that
``--chip`` names. For each model: registers and shared memory of a work item and its group, bytes of registers that are
stored in memory (*spilled*), and what one event takes in the loops over events: instructions, those in double precision, reads of shared memory, and
accesses of spilled registers; and the seconds to build the text. Counts are no times: fewer of all is faster, and what wins
where some rise must be timed on a device.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

import morefit as mf
from analyses import ANALYSES, empty, make_ensemble
from hard_models import MODELS
from morefit.likelihood.observed import observed
from morefit.targets.opencl.device import Device
from morefit.targets.opencl.dialect import OPENCL_GPU
from morefit.targets.opencl.fit import LARGE_GROUP, SMALL_GROUP, FitRunner
from morefit.targets.opencl.fit_space import FEW_EVENTS
from morefit.toys.ensemble import Ensemble
from peers.environments import ROOT, prepare
from peers.systems import NVIDIA

KINDS = {"fp64": ("DFMA", "DMUL", "DADD", "DSETP"), "shared": ("LDS",), "spilled": ("LDL", "STL")}
COLUMNS = ("registers", "spilled_bytes", "shared_bytes", "instructions", *KINDS, "build_s")
INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?\s*([A-Z0-9_.]+)\s*(.*?);")
DECLARED = re.compile(r"(\s*)(volatile )?__local (\w+) ((?:\*?\w+(?:\[[^\]]*\])?(?: = [^,;]*)?(?:, )?)+);")
# OpenCL's names, for a compiler of CUDA
CUDA = """\
typedef unsigned int uint; typedef unsigned long ulong;
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
static __device__ ulong as_ulong(double x) { return (ulong)__double_as_longlong(x); }
static __device__ double as_double(ulong x) { return __longlong_as_double((long long)x); }
static __device__ uint mul_hi(uint a, uint b) { return __umulhi(a, b); }
static __device__ ulong mul_hi(ulong a, ulong b) { return __umul64hi(a, b); }
static __device__ int clz(int x) { return __clz(x); }
#define get_global_id(k) (blockIdx.x * blockDim.x + threadIdx.x)
#define get_local_id(k) ((uint)threadIdx.x)
#define get_group_id(k) ((uint)blockIdx.x)
#define get_local_size(k) ((uint)blockDim.x)
#define barrier(x) __syncthreads()
#define atomic_add(p, v) atomicAdd(p, v)
"""


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Let any device write texts as a GPU does."""
    with (
        patch.object(Device, "dialect", OPENCL_GPU),
        patch.object(Device, "group", LARGE_GROUP),
        patch.object(Device, "group_for", lambda _, group, tiles: group or LARGE_GROUP * (1 + tiles)),
    ):
        yield


def hard_ensemble(name: str, backend: Any) -> tuple[Ensemble, np.ndarray[Any, Any]]:
    hard = MODELS[name]()
    likelihood = empty(hard.model)
    values = {p.name: p.start for p in likelihood.all_parameters}
    drawn = observed("device code", likelihood)
    ensemble = Ensemble(drawn=drawn, fitted=likelihood, truth=values, start=values, seed=1, backend=backend)
    return ensemble, np.array([int(hard.events)])


def text_of_sums(ensemble: Ensemble, events: int) -> str:
    """Return the text that has the sums over the events of toys."""
    job = ensemble.whole_fit()
    assert job is not None
    with as_on_a_gpu():
        runner = FitRunner(mf.OpenCL().open(), job)
        source = runner.source(SMALL_GROUP if events < FEW_EVENTS else LARGE_GROUP)
        return next(t for t, phases in source.texts.items() if any(p.name == "sums0" for p in phases))


def as_cuda(text: str) -> str:
    """Write a text in OpenCL C as CUDA: qualifiers of functions and of memory have other names."""
    lines, depth = [CUDA], 0
    for line in text.splitlines():
        if line.startswith("#pragma OPENCL"):
            continue
        new = line
        if depth == 0:
            new = re.sub(
                r"^__kernel\s+(__attribute__\(\(req\w+\(GROUP, 1, 1\)\)\) )?void",
                r'extern "C" __global__ void',
                new,
            )
            new = re.sub(r"^__constant", "static __constant__", new)
            if re.match(
                r"(__attribute__\(\(noinline\)\) )?(double|void|int|uint|ulong|long|float|real) \w+\(", new
            ):
                new = "static __device__ " + new.replace("__attribute__((noinline))", "__noinline__")
        depth += line.count("{") - line.count("}")
        new = re.sub(r"__(global|constant) ", "", new)
        lines.append(DECLARED.sub(shared_lines, new).replace("__local ", ""))
    return "\n".join(lines)


def shared_lines(declared: re.Match[str]) -> str:
    """Declare arrays of shared memory and pointers into it one by one."""
    space, volatile, kind, names = declared.groups()
    each = (
        f"{kind} {name};" if name.startswith("*") else f"__shared__ {volatile or ''}{kind} {name};"
        for name in names.split(", ")
    )
    return space + " ".join(each)


class Compiler:
    """NVIDIA's compiler, assembler and disassembler, in an environment of their own."""

    def __init__(self, folder: Path, chip: str) -> None:
        place = prepare("nvidia", NVIDIA, folder).parent.parent
        self.library = ctypes.CDLL(str(next(place.rglob("libnvrtc.so.13"))))
        self.assembler, self.disassembler = next(place.rglob("ptxas")), next(place.rglob("cuobjdump"))
        self.paths = {
            **os.environ,
            "PATH": os.pathsep.join([str(next(place.rglob("nvdisasm")).parent), os.environ["PATH"]]),
        }
        self.chip = chip

    def assembly(self, text: str) -> str:
        """Compile CUDA to the language of the assembler."""
        program, size, options = (
            ctypes.c_void_p(),
            ctypes.c_size_t(),
            [f"--gpu-architecture=compute_{self.chip}".encode(), b"-w"],
        )
        self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"sums.cu", 0, None, None)
        failed = self.library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        kind = "ProgramLog" if failed else "PTX"
        self.library[f"nvrtcGet{kind}Size"](program, ctypes.byref(size))
        said = ctypes.create_string_buffer(size.value)
        self.library[f"nvrtcGet{kind}"](program, said)
        if failed:
            raise RuntimeError(said.value.decode())
        return said.value.decode()

    def call(self, *command: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=True, env=self.paths
        )

    def figures(self, text: str) -> dict[str, float]:
        """Compile a text, and look at the function sums0."""
        with tempfile.TemporaryDirectory() as folder:
            source, binary = Path(folder) / "sums.ptx", Path(folder) / "sums.cubin"
            begin = time.perf_counter()
            source.write_text(self.assembly(as_cuda(text)))
            said = self.call(self.assembler, f"-arch=sm_{self.chip}", "-v", source, "-o", binary).stderr
            seconds = time.perf_counter() - begin
            code = self.call(self.disassembler, "-sass", binary).stdout
        own = said[said.index("entry function 'sums0'") :]
        loop = loops_over_events(code[code.index("Function : sums0") :].split("Function : ")[1])
        counts = Counter(
            next((kind for kind, names in KINDS.items() if op.startswith(names)), "other") for op in loop
        )
        return {
            "registers": first_number(r"Used (\d+) registers", own),
            "spilled_bytes": first_number(r"(\d+) bytes spill stores", own),
            "shared_bytes": first_number(r"(\d+) bytes smem", own),
            "instructions": len(loop), **{kind: counts[kind] for kind in KINDS}, "build_s": round(seconds, 2),
        }  # fmt: skip


def first_number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def loops_over_events(code: str) -> list[str]:
    """Return the operations of the outermost loops that read columns and compute with them: from where a branch goes to the branch."""
    instructions = [(int(m[1], 16), m[2], m[3]) for m in INSTRUCTION.finditer(code)]
    loops = [
        (int(target[1], 16), place)
        for place, op, rest in instructions
        if op.startswith("BRA")
        and (target := re.search(r"0x([0-9a-f]+)", rest))
        and int(target[1], 16) < place
    ]
    outermost = [(a, b) for a, b in loops if not any(c <= a and b <= d for c, d in loops if (c, d) != (a, b))]
    bodies = ([op for place, op, _ in instructions if low <= place <= high] for low, high in outermost)
    over_events = (body for body in bodies if has(body, ("LDG",)) and has(body, KINDS["fp64"]))
    return [op for body in over_events for op in body]


def has(body: Sequence[str], names: tuple[str, ...]) -> bool:
    return any(op.startswith(names) for op in body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--chip", default="90", help="compute capability without its point (default: 90, of an H200)"
    )
    parser.add_argument(
        "--models", nargs="*", help="parts of names (default: all that analyses.py and hard_models.py have)"
    )
    parser.add_argument("--envs", type=Path, default=ROOT / ".peers", help="where environments are kept")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "device_code.json")
    options = parser.parse_args()
    compiler, backend = Compiler(options.envs.resolve(), options.chip), mf.OpenCL()
    makers = {name: make_ensemble for name in ANALYSES if not ANALYSES[name]().given}
    makers |= dict.fromkeys(MODELS, hard_ensemble)
    table, results = Table("model", *COLUMNS), []
    for name, make in makers.items():
        if options.models and not any(part in name for part in options.models):
            continue
        ensemble, events = make(name, backend)
        figures = compiler.figures(text_of_sums(ensemble, int(events.sum())))
        results.append({"model": name, **figures})
        table.add_row(name, *(str(figures[column]) for column in COLUMNS))
    Console().print(table)
    options.json.write_text(json.dumps({"chip": options.chip, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
