"""Compiled code on disk: found by the next process, thrown away when in doubt, never in the way."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import morefit as mf
from morefit.targets import cache
from morefit.targets.cpu import compile as machine
from morefit.targets.cpu.run import Cpu

HERE = Path(__file__).parents[1]
EVALUATE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from morefit.targets.cpu import compile as machine
import morefit as mf
from zoo import mass
built = []
real = machine.build_object
machine.build_object = lambda *args, **options: built.append(1) or real(*args, **options)
model, data, x = mass(100)
width = json.loads(sys.argv[2])
value = mf.Likelihood(model, data, backend=mf.Cpu(threads=1, width=width)).value(x)
print(json.dumps({"built": len(built), "value": value.hex()}))
"""


def start(folder, width=None, **environment):
    """Start a process that evaluates a model."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", EVALUATE, str(HERE), json.dumps(width)],
        env=os.environ | {"MOREFIT_CACHE_DIR": str(folder)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(out)


def entries(folder):
    return sorted(Path(folder).glob("*.o"))


@pytest.fixture
def counted(monkeypatch):
    """Count what is compiled in this process, with nothing kept from before."""
    built = []
    real = machine.build_object
    monkeypatch.setattr(
        machine, "build_object", lambda *args, **options: built.append(args) or real(*args, **options)
    )
    monkeypatch.setattr(machine, "_programs", type(machine._programs)())
    return built


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def kernel(number=0.5):
    """Return a kernel of its own for each number."""
    x, k = mf.Observable("x", 0.0, 1.0), mf.Parameter("k", 1.0)
    nll = mf.Likelihood(
        mf.Density(k * x + number, [x], integral=1, check=False), {"x": [0.5]}, backend="reference"
    )
    return nll.program(0) and nll.compiled[0, False].program.kernel


def forget():
    machine._programs.clear()


def test_a_second_process_does_not_compile(tmp_path):
    first, second = (finish(start(tmp_path)) for _ in range(2))
    assert first["built"] == 1
    assert second["built"] == 0
    assert first["value"] == second["value"]


def test_many_processes_may_start_on_an_empty_cache(tmp_path):
    found = [finish(p) for p in [start(tmp_path) for _ in range(4)]]
    assert len({f["value"] for f in found}) == 1
    assert {p.suffix for p in tmp_path.iterdir()} - {cache.PROCESSOR} == {".kernel", ".o"}
    assert finish(start(tmp_path))["built"] == 0


def test_a_kernel_is_compiled_once_in_a_process(folder, counted):
    for _ in range(3):
        Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 1


def test_a_kernel_is_found_on_disk(folder, counted):
    Cpu().compile(kernel()).pending.wait()
    forget()
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 1


def damaged(data: bytes) -> dict[str, bytes]:
    """Return ways in which an entry may be broken."""
    middle = len(data) // 2
    return {
        "empty": b"",
        "short": data[:10],
        "head only": data[: len(cache.MAGIC) + cache.DIGEST],
        "truncated": data[:-100],
        "longer": data + b"\0",
        "one bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "text": b"not an object file" * 100,
        "other version": data.replace(b"morefit object 1", b"morefit object 0"),
    }


@pytest.mark.parametrize("how", damaged(b"morefit object 1\n" + bytes(200)))
def test_a_damaged_entry_is_compiled_anew(how, folder, counted):
    Cpu().compile(kernel()).pending.wait()
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(damaged(whole)[how])
    forget()
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 2
    assert entry.read_bytes() == whole


def test_an_entry_of_another_kernel_is_not_used(folder, counted):
    Cpu().compile(kernel(0.5)).pending.wait()
    (first,) = entries(folder)
    Cpu().compile(kernel(0.25)).pending.wait()
    (second,) = set(entries(folder)) - {first}
    second.write_bytes(first.read_bytes())
    forget()
    Cpu().compile(kernel(0.25)).pending.wait()
    assert len(counted) == 3


def test_an_entry_without_the_functions_is_compiled_anew(folder, counted):
    """Whole and signed, but from a program with other functions."""
    Cpu().compile(kernel()).pending.wait()
    (entry,) = entries(folder)
    payload = machine.build_object("define void @stranger() { ret void }", driver=False)
    counted.clear()
    key = entry.stem
    entry.write_bytes(cache.MAGIC + hashlib.sha256(key.encode() + payload).digest() + payload)
    forget()
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 1


def test_an_entry_with_nothing_in_it_is_compiled_anew(folder, counted):
    Cpu().compile(kernel()).pending.wait()
    (entry,) = entries(folder)
    entry.write_bytes(cache.MAGIC + hashlib.sha256(entry.stem.encode()).digest())
    forget()
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 2


def test_an_entry_that_is_a_folder_is_no_error(folder, counted):
    Cpu().compile(kernel()).pending.wait()
    (entry,) = entries(folder)
    entry.unlink()
    entry.mkdir()
    forget()
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 2
    assert list(folder.iterdir()) == [entry]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch, counted):
    blocked = tmp_path / "file"
    blocked.write_text("here is no folder")
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(blocked / "kernels"))
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 1
    assert blocked.read_text() == "here is no folder"


def test_a_read_only_folder_is_no_error(folder, counted):
    folder.mkdir()
    folder.chmod(0o500)
    Cpu().compile(kernel()).pending.wait()
    folder.chmod(0o700)
    assert len(counted) == 1


def test_a_full_disk_leaves_nothing_behind(folder, counted, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    Cpu().compile(kernel()).pending.wait()
    assert not list(folder.iterdir())


def test_an_empty_name_switches_the_cache_off(tmp_path, monkeypatch, counted):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOREFIT_CACHE_DIR", "")
    assert cache.cache_folder() is None
    Cpu().compile(kernel()).pending.wait()
    forget()
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 2
    assert not list(tmp_path.iterdir())


def test_a_user_without_a_home_has_no_cache(monkeypatch, counted):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("MOREFIT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert cache.cache_folder() is None
    Cpu().compile(kernel()).pending.wait()
    assert len(counted) == 1


def test_the_cache_follows_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("MOREFIT_CACHE_DIR")
    monkeypatch.setattr(cache.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "morefit"


def test_another_width_is_another_entry(folder, counted):
    widths = (1, 2, 4, 8)
    for width in widths:
        Cpu(width=width).compile(kernel()).pending.wait()
    assert len(counted) == len(entries(folder)) == len(widths)


@pytest.mark.parametrize("part", ["cpu", "features"])
def test_another_processor_is_another_entry(part, folder, counted, monkeypatch):
    Cpu().compile(kernel()).pending.wait()
    forget()
    here = machine.host()
    other = here._replace(**{part: "+sse2" if part == "features" else "x86-64"})
    monkeypatch.setattr(machine, "host", lambda: other)
    Cpu().compile(kernel()).pending.wait()
    assert len(entries(folder)) == 2


def test_another_compiler_is_another_entry(folder, counted, monkeypatch):
    Cpu().compile(kernel()).pending.wait()
    forget()
    monkeypatch.setattr(machine.llvmlite, "__version__", "0.0")
    Cpu().compile(kernel()).pending.wait()
    assert len(entries(folder)) == 2


def test_the_number_of_programs_kept_is_bounded(folder, counted, monkeypatch):
    monkeypatch.setattr(machine, "MAX_PROGRAMS", 4)
    for k in range(8):
        Cpu().compile(kernel(1.0 + k)).pending.wait()
    assert len(machine._programs) == 4
    Cpu().compile(kernel(8.0)).pending.wait()
    assert len(counted) == 8


def test_a_program_outlives_its_place_among_those_kept(folder, counted, monkeypatch):
    monkeypatch.setattr(machine, "MAX_PROGRAMS", 1)
    x, k = mf.Observable("x", 0.0, 1.0), mf.Parameter("k", 1.0)
    nll = mf.Likelihood(
        mf.Density(k * x + 0.125, [x], integral=1, check=False), {"x": np.linspace(0, 1, 50)}, backend="cpu"
    )
    before = nll.value([1.0])
    for number in range(3):
        Cpu().compile(kernel(10.0 + number)).pending.wait()
    assert nll.value([1.0]) == before
