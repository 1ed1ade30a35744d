"""Virtual environments, one for each peer: made once, kept while their requirements stay the same."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from peers.systems import Environment

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "morefit"
ASK = "import importlib.metadata as m, json, platform, sys; print(json.dumps({'python': platform.python_version(), **{n: m.version(n) for n in sys.argv[1:]}}))"


class SetupError(RuntimeError):
    """A command failed, most likely pip's; the message is the end of what it said."""


def prepare(name: str, environment: Environment, folder: Path) -> Path:
    """Return the interpreter of an environment, made if it is not there or its requirements have changed."""
    place = folder / name
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp, wanted = place / "requirements.txt", "\n".join(environment.requirements) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"environment {name}: installing {', '.join(environment.requirements)}", flush=True)
    call(sys.executable, "-m", "venv", str(place))
    call(str(python), "-m", "pip", "install", "--quiet", *environment.requirements)
    stamp.write_text(wanted)
    return python


def call(*command: str, env: dict[str, str] | None = None) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise SetupError("; ".join([line for line in said if line.startswith("ERROR")] or said[-1:]))
    return done.stdout


def versions(python: Path, environment: Environment) -> dict[str, str]:
    """Return what runs there: Python, the packages asked for, and a digest of our own sources."""
    names = [r.split("==")[0] for r in environment.requirements]
    found: dict[str, str] = json.loads(call(str(python), "-c", ASK, *names))
    if environment.source:
        found["morefit sources"] = digest(*sorted(SOURCE.rglob("*.py")))
    return found


def digest(*paths: Path) -> str:
    """Return a short hash of files."""
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def variables(python: Path, environment: Environment, threads: int, scratch: str) -> dict[str, str]:
    """Return the environment variables of a worker: where modules are, and how many threads libraries may use."""
    paths = [str(ROOT / "benchmarks"), *([str(SOURCE.parent)] if environment.source else [])]
    count = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    found = os.environ | count | {
        "PYTHONPATH": os.pathsep.join(paths),
        "MOREFIT_CACHE_DIR": scratch,  # so that the first toy compiles
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_NUM_INTEROP_THREADS": str(threads),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}",
    }  # fmt: skip
    if environment.libraries:
        found["LD_LIBRARY_PATH"] = str(python.parent.parent / "lib")
    return found


def machine() -> dict[str, Any]:
    """Return what timings depend on."""
    processor = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        names = [
            line.split(":")[1].strip() for line in facts.read_text().splitlines() if "model name" in line
        ]
        processor = names[0] if names else processor
    return {"processor": processor, "cores": available_cores(), "system": platform.system()}


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
