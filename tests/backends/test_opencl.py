"""OpenCL: rendered text, devices, errors, caching, and the same events as on the CPU. MOREFIT_UPDATE_GOLDEN=1 writes golden files."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launching import Layout, bind, model_of, sums_of, values_of

import morefit as mf
from morefit.backend import Cpu, Events, OpenCL, Reference, choose_backend, devices, opencl, opencl_device
from morefit.errors import BackendError, CompileError
from morefit.expr import LEAVES, ONE, ZERO, Op, column
from morefit.generate import Sampler, all_values
from morefit.kernel import Arith, Precision
from morefit.pipeline import compile_sampler
from morefit.render.cstyle import HELPERS, TEXT, Names, number_text
from morefit.render.opencl import Shape, render
from tolerances import NUMPY_SUM, REPEATED, SAME_RANDOM_NUMBER, SUM_OF_LOGS
from zoo import around

FOLDER = Path(__file__).parents[1] / "golden"
SHAPE = Shape(128)
KERNELS = {
    "opencl_mass_value": ("mass", "value"),
    "opencl_mass_hessian": ("mass", "hessian"),
    "opencl_gaussian_value": ("gaussian", "value"),
}


@pytest.fixture
def device():
    """A device, or the reason why there is none."""
    try:
        found = [d for d in devices() if d.double]
    except BackendError as error:
        pytest.skip(str(error))
    if not found:
        pytest.skip("backend 'opencl': no device with double precision on this machine")
    return found[0]


@pytest.fixture
def nothing_open(monkeypatch):
    """Forget what was opened before."""
    monkeypatch.setattr(opencl_device, "_devices", {})


# text


def test_every_operation_has_a_row():
    wanted = {op for op in Op if op not in LEAVES} - {Op.INTEGRAL} | set(Arith)
    assert set(TEXT) == wanted


def test_functions_that_the_language_lacks_are_written():
    assert set(HELPERS) == {Op.NDTRI, Op.DIGAMMA, Op.TRIGAMMA, Op.TETRAGAMMA}


def sampling_kernel():
    return compile_sampler((column("uniform 0"), column("uniform 1")), ONE, ZERO, Reference()).program.kernel


def check_golden(file, text):
    path = FOLDER / f"{file}.cl"
    if os.environ.get("MOREFIT_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text(), (
        "if the change is meant, set MOREFIT_UPDATE_GOLDEN=1 and look at the diff"
    )


@pytest.mark.parametrize("file", KERNELS)
def test_kernel_is_as_recorded(file):
    check_golden(file, render(sums_of(*KERNELS[file], False, Reference()).program.kernel, SHAPE))


def test_kernel_that_draws_is_as_recorded():
    check_golden("opencl_sample", render(sampling_kernel(), SHAPE))


def test_kernel_that_keeps_values_is_as_recorded():
    check_golden("opencl_gaussian_store", render(values_of("gaussian", Reference()).program.kernel, SHAPE))


@pytest.mark.parametrize("number", [0.1, -2.5, 1e300, 5e-324, 1 / 3, float("inf"), float("-inf")])
def test_numbers_keep_all_their_digits(number):
    text = number_text(number).replace("((double)INFINITY)", "inf").replace("((double)-INFINITY)", "-inf")
    assert float(text.strip("()")) == number


def test_single_precision_numbers_say_so():
    assert number_text(0.1, Precision.SINGLE) == "0.1f"
    assert number_text(1e300, Precision.SINGLE) == "((float)INFINITY)"


def test_names_become_identifiers_of_their_own():
    names = Names()
    found = [
        names.add(n, "c")
        for n in ("weight of the event", "weight_of_the_event", "double", "\u03b1", "\u03b2")
    ]
    assert found == ["c_weight_of_the_event", "c_weight_of_the_event_", "c_double", "c_", "c__"]


def test_parameters_may_be_called_as_words_of_the_language(device):
    x = mf.Observable("item", 0.5, 2.0)
    names = ("double", "exp", "set", "k", "sum0", "v0", "p0", "half", "kernel", "\u03b1")
    parameters = [mf.Parameter(name, 1.0 + k, 0.1, 20.0) for k, name in enumerate(names)]
    formula = sum(p * np.exp(x * k / 10) for k, p in enumerate(parameters))
    model, data = mf.Density(formula, [x], integral=1), {"item": np.linspace(0.6, 1.9, 50)}
    point = np.arange(1.0, 11.0)
    found, expected = (mf.Likelihood(model, data, backend=b).value(point) for b in (OpenCL(), Cpu()))
    assert found == pytest.approx(expected)


# devices and errors


def test_devices_say_what_they_are(device):
    text = str(device)
    assert device.name in text
    assert "GB" in text
    assert "double precision" in text
    assert device.memory > 0


def test_the_name_chooses_the_backend():
    assert choose_backend("opencl") == OpenCL()
    assert OpenCL().name == "opencl"


def test_importing_morefit_does_not_import_pyopencl():
    code = "import sys, morefit; assert 'pyopencl' not in sys.modules"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_missing_package_is_named(monkeypatch, nothing_open):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(
        BackendError, match=r"'opencl': pyopencl is not installed; pip install morefit\[opencl\]"
    ):
        OpenCL().open()


def test_no_platform_is_an_error(monkeypatch, nothing_open):
    monkeypatch.setattr(opencl_device, "found_devices", list)
    with pytest.raises(
        BackendError, match="'opencl': no platform found; install a driver, or use backend='cpu'"
    ):
        OpenCL().open()


@pytest.mark.parametrize("wish", [{"device": 99}, {"device": "abacus"}, {"platform": "abacus"}])
def test_no_such_device_is_an_error(device, wish):
    with pytest.raises(BackendError, match=r"'opencl': no device found for platform=.*; there are: 0:0 "):
        OpenCL(**wish).open()


def test_no_double_precision_is_an_error(monkeypatch, nothing_open):
    info = opencl_device.DeviceInfo(0, 0, "Toy", "Games", "GPU", 1, False)
    monkeypatch.setattr(opencl_device, "found_devices", lambda: [(info, None)])
    with pytest.raises(BackendError, match=r"'opencl': no double precision \(cl_khr_fp64\) on Toy; choose"):
        OpenCL().open()


def test_a_device_is_found_by_number_and_by_name(device):
    by_number = OpenCL(platform=device.platform, device=device.device).open()
    by_name = OpenCL(platform=device.platform_name[:5].upper(), device=device.name).open()
    assert by_number.info == by_name.info == device


@pytest.mark.parametrize("group", [0, 3, 1024])
def test_work_groups_are_powers_of_two(group):
    with pytest.raises(BackendError, match=f"work_group must be a power of two up to 512, got {group}"):
        OpenCL(work_group=group)


def test_text_that_does_not_build_is_shown(device, monkeypatch):
    monkeypatch.setattr(opencl, "render", lambda kernel, shape: "__kernel void prepare() { nonsense; }")
    with pytest.raises(CompileError, match="refused the text") as caught:
        OpenCL().compile(sampling_kernel())
    assert "nonsense" in caught.value.source
    assert "undeclared" in str(caught.value)


def test_too_large_a_buffer_is_an_error(device):
    with pytest.raises(BackendError, match=r"ran out of memory: .* GB wanted in one piece"):
        OpenCL().open().allocate(1 << 50)


def test_a_driver_out_of_memory_is_an_error(device):
    here = OpenCL().open()
    with pytest.raises(BackendError, match="ran out of memory while testing"), here.watched("testing"):
        raise here.cl.MemoryError("no room")


def test_a_forked_child_is_told_to_be_spawned(device, monkeypatch):
    OpenCL().open()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(BackendError, match=r"used before this process was forked.*'spawn'"):
        OpenCL().open()


def test_the_backend_can_be_pickled(device):
    OpenCL().open()
    assert pickle.loads(pickle.dumps(OpenCL(work_group=8))) == OpenCL(work_group=8)


# caching, reuse


def test_a_program_is_built_once_and_found_on_disk(device, monkeypatch, tmp_path, nothing_open):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    built = []
    real = opencl_device.Device.from_source
    monkeypatch.setattr(opencl_device.Device, "from_source", lambda *args: built.append(1) or real(*args))
    kernel = sampling_kernel()
    OpenCL().compile(kernel)
    OpenCL().compile(kernel)
    assert len(built) == 1
    assert len(list(tmp_path.glob("*.o"))) == 1
    opencl_device._devices.clear()
    program = OpenCL().compile(kernel)
    assert len(built) == 1
    program.sample(np.empty((1, 0)), Events.slices([10]), 1, 0)


def test_a_binary_that_the_driver_refuses_is_built_anew(device, monkeypatch, tmp_path, nothing_open):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(opencl_device, "load", lambda key: b"not a program")
    program = OpenCL().compile(sampling_kernel())
    assert program.sample(np.empty((1, 0)), Events.slices([10]), 1, 0).columns[0].count == 10


def test_nothing_is_allocated_or_built_from_call_to_call(device, monkeypatch):
    bound = bind(sums_of("mass", "hessian", False, OpenCL()), "mass", Layout(5000))
    x = around(model_of("mass")[2], 3)
    first = bound(x)
    for name in ("allocate", "build", "send"):
        monkeypatch.setattr(opencl_device.Device, name, None)
    np.testing.assert_array_equal(bound(x), first)


@pytest.mark.parametrize("group", [1, 8, 64])
def test_any_work_group_gives_the_same_sums(device, group):
    model, data, x = model_of("mass")
    usual, other = (mf.Likelihood(model, data, backend=OpenCL(work_group=g)) for g in (None, group))
    assert other.value(x) == pytest.approx(usual.value(x), rel=SUM_OF_LOGS)
    np.testing.assert_allclose(other.gradient(x), usual.gradient(x), rtol=NUMPY_SUM)


# random numbers


@pytest.mark.parametrize("prefix", ["uniform", "xoshiro"])
def test_random_numbers_are_those_of_the_cpu(device, prefix):
    columns = tuple(column(f"{prefix} {k}") for k in range(5))
    sizes, seed, toy = [1000, 0, 37, 5000], 0x1234_5678_9ABC_DEF0, (1 << 33) + 5
    found, expected = (
        compile_sampler(columns, ONE, ZERO, b).program.sample(
            np.empty((4, 0)), Events.slices(sizes), seed, toy
        )
        for b in (OpenCL(), Cpu())
    )
    for a, b in zip(found.columns, expected.columns, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


@pytest.mark.parametrize("name", ["mass", "kstarmumu", "gaussian", "crystal ball", "product"])
def test_events_are_those_of_the_cpu(device, name):
    model = model_of(name)[0]
    found, expected = (
        Sampler(model, all_values(model, None), b).draw(np.array([700, 0, 2000]), 7, 3)
        for b in (OpenCL(), Cpu())
    )
    for o, a, b in zip(model.observables, found.columns, expected.columns, strict=True):
        assert np.abs(a.values - b.values).max() <= SAME_RANDOM_NUMBER * (o.high - o.low)


def test_candidates_that_are_never_accepted_are_reported(device):
    program = compile_sampler((column("uniform 0"),), ZERO, ONE, OpenCL()).program
    drawn = program.sample(np.empty((1, 0)), Events.slices([3]), 1, 0)
    assert drawn.given_up == 3
    assert drawn.above == 3


def test_fits_and_toys_are_those_of_the_cpu(device):
    model, data, _ = model_of("mass")
    one, other = (mf.fit(model, data, backend=b) for b in (OpenCL(), Cpu()))
    for name in one.values:
        assert abs(one.values[name] - other.values[name]) <= REPEATED * other.errors[name]
    toys, same = (
        mf.toy_study(model, toys=20, events=500, seed=4, backend=b, progress=False) for b in (OpenCL(), Cpu())
    )
    assert (np.abs(toys.values - same.values) <= REPEATED * same.errors).all()
