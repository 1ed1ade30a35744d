"""OpenCL: rendered text, devices, errors, caching, and the same events as on the CPU. MOREFIT_UPDATE_GOLDEN=1 writes golden files."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import weakref
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from launching import Layout, bind, model_of, sums_of, values_of

import morefit as mf
from backend_rows import there
from derivatives import value_and_derivatives
from ensembles import ensemble_of, fit_rows
from morefit.errors import BackendError, CompileError
from morefit.expr import ONE, OPERATIONS, ZERO
from morefit.kernel.ir import Precision
from morefit.kernel.symbols import stream_uniform, uniform
from morefit.pipeline import compile_sampler
from morefit.sampling.generate import Sampler, all_values
from morefit.targets import ahead
from morefit.targets.base import Events
from morefit.targets.choose import WORTH_A_GPU, choose_backend
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl import device as opencl_device
from morefit.targets.opencl import discover as opencl_found
from morefit.targets.opencl import fit as opencl_fit
from morefit.targets.opencl import fit_space, staging
from morefit.targets.opencl import launch as opencl_launch
from morefit.targets.opencl import programs as opencl_programs
from morefit.targets.opencl.columns import DeviceColumn
from morefit.targets.opencl.dialect import OPENCL_GPU, Names, number_text
from morefit.targets.opencl.discover import devices
from morefit.targets.opencl.fit_shape import PLAIN, lift_numbers
from morefit.targets.opencl.functions import CALLED, DEFINED, TEXTS, texts_by_function
from morefit.targets.opencl.run import OpenCL
from morefit.targets.opencl.source import render
from morefit.targets.reference.run import Reference
from morefit.toys.whole_fits import fit_whole_together
from tolerances import NUMPY_SUM, REPEATED, SAME_RANDOM_NUMBER, SUM_OF_LOGS
from zoo import around

FOLDER = Path(__file__).parents[1] / "golden"
GROUP = 128
KERNELS = {
    "opencl_mass_value": ("mass", "value"),
    "opencl_mass_hessian": ("mass", "hessian"),
    "opencl_gaussian_value": ("gaussian", "value"),
}


@pytest.fixture
def device():
    """A device, or the reason why there is none."""
    there(OpenCL())
    return next(d for d in devices() if d.double)


@pytest.fixture
def nothing_open(monkeypatch):
    """Forget what was opened before."""
    monkeypatch.setattr(opencl_device, "_devices", {})


# text


def test_functions_that_the_language_lacks_are_written():
    """Each text has a function that an operation or another text calls."""
    calls = {text: set(CALLED.findall(text)) for text in (*TEXTS, *(op.c for op in OPERATIONS))}
    assert {"exact_log2", "exact_log10", "ndtri", "digamma", "erfcx", "wofz_real"} <= set(texts_by_function())
    for text in TEXTS:
        others = set().union(*(names for other, names in calls.items() if other != text))
        assert not others.isdisjoint(DEFINED.findall(text)), text


def sampling_kernel():
    return compile_sampler((uniform(0), uniform(1)), ONE, ZERO, Reference()).program.kernel


def check_golden(file, text):
    path = FOLDER / f"{file}.cl"
    if os.environ.get("MOREFIT_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text(), (
        "if the change is meant, set MOREFIT_UPDATE_GOLDEN=1 and look at the diff"
    )


@pytest.mark.parametrize("file", KERNELS)
def test_kernel_is_as_recorded(file):
    check_golden(file, render(sums_of(*KERNELS[file], False, Reference()).program.kernel, GROUP))


def test_kernel_that_draws_is_as_recorded():
    check_golden("opencl_sample", render(sampling_kernel(), GROUP))


def test_kernel_that_draws_again_is_as_recorded():
    accept = uniform(1) < uniform(0)
    kernel = compile_sampler((uniform(0),), accept, ZERO, Reference()).program.kernel
    check_golden("opencl_sample_again", render(kernel, GROUP))


def test_kernel_that_keeps_values_is_as_recorded():
    check_golden("opencl_gaussian_store", render(values_of("gaussian", Reference()).program.kernel, GROUP))


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
    model, data = mf.Density(formula, [x], integral=1, check=False), {"item": np.linspace(0.6, 1.9, 50)}
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
        BackendError, match=r"'opencl': pyopencl is not installed; pip install 'morefit\[opencl\]'"
    ):
        OpenCL().open()


def test_no_platform_is_an_error(monkeypatch, nothing_open):
    monkeypatch.setattr(opencl_found, "all_devices", list)
    with pytest.raises(
        BackendError, match="'opencl': no platform found; install a driver, or use backend='cpu'"
    ):
        OpenCL().open()


@pytest.mark.parametrize("wish", [{"device": 99}, {"device": "abacus"}, {"platform": "abacus"}])
def test_no_such_device_is_an_error(device, wish):
    with pytest.raises(BackendError, match=r"'opencl': no device found for platform=.*; there are: 0:0 "):
        OpenCL(**wish).open()


def test_no_double_precision_is_an_error(monkeypatch, nothing_open):
    info = opencl_found.DeviceInfo(0, 0, "Toy", "Games", "GPU", 1, False)
    monkeypatch.setattr(opencl_found, "all_devices", lambda: [(info, None)])
    with pytest.raises(BackendError, match=r"'opencl': no double precision \(cl_khr_fp64\) on Toy; choose"):
        OpenCL().open()


def test_a_device_is_found_by_number_and_by_name(device):
    by_number = OpenCL(platform=device.platform, device=device.device).open()
    by_name = OpenCL(platform=device.platform_name[:5].upper(), device=device.name).open()
    assert by_number.info == by_name.info == replace(device, auto=False)


@pytest.mark.parametrize("group", [0, 3, 1024])
def test_work_groups_are_powers_of_two(group):
    with pytest.raises(BackendError, match=f"work_group must be a power of two up to 512, got {group}"):
        OpenCL(work_group=group)


def test_text_that_does_not_build_is_shown(device, monkeypatch):
    program = OpenCL().compile(sampling_kernel())
    program.texts = {"__kernel void sample() { nonsense; }": ("sample",)}
    with pytest.raises(CompileError, match="refused the text") as caught:
        program.sample(np.empty((1, 0)), Events.slices([10]), 1, 0)
    assert "nonsense" in caught.value.source
    assert "undeclared" in str(caught.value)


def test_a_driver_that_does_not_know_the_processor_is_named(device, monkeypatch):
    """PoCL 3.0 on a processor of 2024: the error was that of its compiler alone."""
    programs = OpenCL().open().programs

    def refuse(program):
        raise programs.cl.Error("error: unknown target CPU 'generic'")

    monkeypatch.setattr(programs, "finished", refuse)
    with pytest.raises(
        CompileError, match=r"refused the text: .*; this driver is older than the processor: install"
    ):
        programs.from_text("")


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
    monkeypatch.setattr(opencl_programs, "KEEPS_ITS_OWN", frozenset())
    built = []
    real = opencl_programs.Programs.from_source
    monkeypatch.setattr(opencl_programs.Programs, "from_source", lambda *args: built.append(1) or real(*args))
    kernel = sampling_kernel()
    for _ in range(2):
        program = OpenCL().compile(kernel)
        program.kernels(program, ["sample"])
    assert len(built) == 1
    assert len(list(tmp_path.glob("*.o"))) == 1
    opencl_device._devices.clear()
    program = OpenCL().compile(kernel)
    assert len(built) == 1
    program.sample(np.empty((1, 0)), Events.slices([10]), 1, 0)


def test_a_driver_that_keeps_programs_itself_is_not_asked_for_them(
    device, monkeypatch, tmp_path, nothing_open
):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(opencl_programs, "KEEPS_ITS_OWN", frozenset({OpenCL().open().info.platform_name}))
    program = OpenCL().compile(sampling_kernel())
    program.kernels(program, ["sample"])
    assert list(tmp_path.glob("*.o")) == []


def test_a_binary_that_the_driver_refuses_is_built_anew(device, monkeypatch, tmp_path, nothing_open):
    monkeypatch.setenv("MOREFIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(opencl_programs, "load", lambda key: b"not a program")
    program = OpenCL().compile(sampling_kernel())
    assert program.sample(np.empty((1, 0)), Events.slices([10]), 1, 0).columns[0].count == 10


def test_nothing_is_allocated_or_built_from_call_to_call(device, monkeypatch):
    bound = bind(sums_of("mass", "hessian", False, OpenCL()), "mass", Layout(5000))
    x = around(model_of("mass")[2], 3)
    first = bound(x)
    for name in ("allocate", "send"):
        monkeypatch.setattr(opencl_device.Device, name, None)
    monkeypatch.setattr(opencl_programs.Programs, "build", None)
    np.testing.assert_array_equal(bound(x), first)


@pytest.mark.parametrize("group", [1, 8, 64])
def test_any_work_group_gives_the_same_sums(device, group):
    model, data, x = model_of("mass")
    usual, other = (mf.Likelihood(model, data, backend=OpenCL(work_group=g)) for g in (None, group))
    (value, slopes), (expected, expected_slopes) = (value_and_derivatives(n, x, 1) for n in (other, usual))
    assert value == pytest.approx(expected, rel=SUM_OF_LOGS)
    np.testing.assert_allclose(slopes, expected_slopes, rtol=NUMPY_SUM)


@pytest.mark.parametrize("events", [700, 30_000])  # in one launch, and in three
def test_scalars_in_shared_memory_give_the_same_sums(device, monkeypatch, events):
    x, layout = around(model_of("mass")[2], 3), Layout(events)
    usual = bind(sums_of("mass", "hessian", False, OpenCL()), "mass", layout)(x)
    monkeypatch.setattr(opencl_device.Device, "dialect", OPENCL_GPU)
    program = sums_of("mass", "hessian", False, OpenCL(work_group=16))
    np.testing.assert_allclose(bind(program, "mass", layout)(x), usual, rtol=NUMPY_SUM)
    assert "volatile __local real shared_scalars" in program.program.source


def test_whole_fits_with_scalars_in_shared_memory_are_the_same(device, monkeypatch):
    model, sizes = model_of("mass")[0], [900, 0, 2500]
    ensemble = ensemble_of(model, backend=OpenCL())
    usual = fit_rows(ensemble, sizes)
    monkeypatch.setattr(opencl_device.Device, "dialect", OPENCL_GPU)
    other = fit_rows(ensemble_of(model, backend=OpenCL()), sizes)
    np.testing.assert_allclose(other, usual, rtol=NUMPY_SUM, atol=1e-12)


# random numbers


@pytest.mark.parametrize("number", [uniform, stream_uniform])
def test_random_numbers_are_those_of_the_cpu(device, number):
    columns = tuple(number(k) for k in range(5))
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
    program = compile_sampler((uniform(0),), ZERO, ZERO, OpenCL()).program
    drawn = program.sample(np.empty((1, 0)), Events.slices([3]), 1, 0)
    assert drawn.abandoned == 3
    assert drawn.above == 0


def test_candidates_above_their_envelope_are_reported(device):
    program = compile_sampler((uniform(0),), ONE, ONE, OpenCL()).program
    drawn = program.sample(np.empty((1, 0)), Events.slices([3]), 1, 0)
    assert drawn.abandoned == 0
    assert drawn.above == 3


# groups of one item, of a few and of many, where most candidates are refused and where most are accepted
@pytest.mark.parametrize(("share", "group"), [(0.02, 1), (0.02, 128), (0.5, 2), (0.5, 16), (0.97, 128)])
def test_events_are_drawn_again_until_accepted(device, share, group):
    x, u = uniform(0), uniform(1)
    accept = u < share
    sizes = Events.slices([700, 1, 0, 5000])
    ours, judge = (
        compile_sampler((x, u), accept, ZERO, backend).program.sample(np.empty((4, 0)), sizes, 3, 0)
        for backend in (OpenCL(work_group=group), mf.Cpu())
    )
    assert not ours.abandoned
    for a, b in zip(ours.columns, judge.columns, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
    assert (ours.columns[1].values < share).all()


def test_fits_and_toys_are_those_of_the_cpu(device):
    model, data, _ = model_of("mass")
    one, other = (mf.fit(model, data, backend=b) for b in (OpenCL(), Cpu()))
    for name in one.values:
        assert abs(one.values[name] - other.values[name]) <= REPEATED * other.errors[name]
    toys, same = (
        mf.toy_study(model, toys=20, events=500, seed=4, backend=b, progress=False) for b in (OpenCL(), Cpu())
    )
    assert (np.abs(toys.values - same.values) <= REPEATED * same.errors).all()


# "auto"


def some_devices(*kinds):
    """Devices of some kinds, the last of them without double precision."""
    return [
        (opencl_found.DeviceInfo(0, k, f"{kind} {k}", "Games", kind, 1 << 30, k < len(kinds) - 1), None)
        for k, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "events", "expected"),
    [
        (("CPU", "GPU", "GPU", "GPU"), WORTH_A_GPU, OpenCL(0, 1)),
        (("CPU", "GPU", "GPU", "GPU"), WORTH_A_GPU - 1, Cpu()),
        (("CPU", "GPU"), WORTH_A_GPU, Cpu()),  # the GPU has no double precision
        (("CPU", "CPU"), WORTH_A_GPU, Cpu()),
        ((), WORTH_A_GPU, Cpu()),
    ],
)
def test_auto_is_a_gpu_for_large_work(monkeypatch, nothing_open, kinds, events, expected):
    pytest.importorskip("pyopencl")
    monkeypatch.setattr(opencl_found, "all_devices", lambda: some_devices(*kinds))
    assert choose_backend("auto", events) == expected


def test_auto_is_the_cpu_where_there_is_no_opencl(monkeypatch, nothing_open):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert choose_backend("auto", WORTH_A_GPU) == Cpu()


def test_auto_is_the_cpu_in_a_forked_child(monkeypatch):
    monkeypatch.setattr(opencl_device, "_devices", {(-1, None, None): None})
    monkeypatch.setattr(opencl_found, "all_devices", lambda: some_devices("GPU", "GPU"))
    assert choose_backend("auto", WORTH_A_GPU) == Cpu()


def test_devices_say_which_one_auto_uses(monkeypatch):
    pytest.importorskip("pyopencl")
    monkeypatch.setattr(opencl_found, "all_devices", lambda: some_devices("CPU", "GPU", "GPU", "GPU"))
    assert [d.auto for d in devices()] == [False, True, False, False]
    assert str(devices()[1]).endswith("double precision, used by auto for large work")


@pytest.mark.parametrize("asked", ["fit", "toys", "many", "draw", "scan", "belt"])
def test_auto_is_told_how_much_work_there_is(monkeypatch, asked):
    told = []

    def choose(backend, events=0):
        told.append(events)
        return Cpu()

    for module in ("likelihood.unbinned", "sampling.generate", "toys.many", "jobs.run"):
        monkeypatch.setattr(import_module(f"morefit.{module}"), "choose_backend", choose)
    model, data = model_of("gaussian")[0], mf.generate(model_of("gaussian")[0], 100, seed=1, backend=Cpu())
    told.clear()
    name = model.parameters[0].name
    values = [model.parameters[0].start]
    do = {
        "fit": lambda: mf.fit(model, data),
        "toys": lambda: mf.toy_study(model, toys=3, events=100, seed=1, progress=False),
        "many": lambda: mf.fit_many(model, [data, data, data]),
        "draw": lambda: mf.generate(model, [100, 200], seed=1),
        "scan": lambda: mf.intervals.feldman_cousins(
            mf.Likelihood(model, data), name, values, toys=3, seed=1, progress=False
        ),
        "belt": lambda: mf.intervals.neyman_belt(
            model, name, values, toys=3, events=100, seed=1, progress=False
        ),
    }
    do[asked]()
    assert max(told) == {"fit": 100, "scan": 600}.get(asked, 300)


def test_a_fit_says_on_which_device_it_ran(device):
    model, data, _ = model_of("gaussian")
    assert mf.fit(model, data, backend=OpenCL()).backend == f"opencl ({OpenCL().open().info.name})"


# where events are


LAYOUTS = [Layout(9000), Layout(9000, weighted=True), Layout(9000, rows=3), Layout((4000, 0, 5000))]


# of the model with three columns, one kernel is sent its events in each layout
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "kind"), [("mass", "value"), ("mass", "hessian"), ("mass", "fisher"), ("kstarmumu", "hessian")]
)
def test_events_sent_in_pieces_give_the_same_bits(device, name, kind, layout):
    x = around(model_of(name)[2], 3)
    weighted = layout.weights is not None
    usual, tight = (
        bind(sums_of(name, kind, weighted, b), name, layout)(x) for b in (OpenCL(), OpenCL(memory=40_000))
    )
    np.testing.assert_array_equal(usual, tight)


def test_little_memory_means_several_pieces(device):
    bound = bind(sums_of("mass", "value", False, OpenCL(memory=40_000)), "mass", Layout(9000))
    assert len(bound.launch.space(1).pieces) >= 3


def test_values_of_events_come_in_pieces(device):
    x = around(model_of("gaussian")[2], 2)
    usual, tight = (
        bind(values_of("gaussian", b), "gaussian", Layout(9000))(x) for b in (OpenCL(), OpenCL(memory=40_000))
    )
    np.testing.assert_array_equal(usual, tight)


@pytest.mark.parametrize("generator", ["philox", "xoshiro128++"])
def test_events_drawn_in_pieces_are_the_same(device, generator):
    model = model_of("mass")[0]
    usual, tight = (
        mf.generate(model, [9000, 500], seed=3, backend=b, generator=generator)
        for b in (OpenCL(), OpenCL(memory=40_000))
    )
    for one, other in zip(usual, tight, strict=True):
        np.testing.assert_array_equal(one["m"], other["m"])


def test_toys_with_little_memory_are_fitted_all_the_same(device):
    model = model_of("mass")[0]
    datasets = mf.generate(model, [600, 700], seed=3)
    usual, tight = (mf.fit_many(model, datasets, backend=b) for b in (OpenCL(), OpenCL(memory=8_000)))
    assert (np.abs(tight.values - usual.values) <= REPEATED * usual.errors).all()


@pytest.mark.parametrize("memory", [0, -1])
def test_memory_is_a_positive_number(memory):
    with pytest.raises(BackendError, match=f"memory must be a positive number of bytes, got {memory}"):
        OpenCL(memory=memory)


def test_memory_of_columns_is_counted_while_they_live(device):
    here = OpenCL().open()
    before = here.column_bytes
    column_ = OpenCL().upload(np.ones(1000))
    assert here.column_bytes == before + 8000
    del column_
    assert here.column_bytes == before


def test_drawn_events_stay_on_the_device(device, monkeypatch):
    model = model_of("kstarmumu")[0]  # has columns that depend on events alone
    start = all_values(model, None)
    ensemble = ensemble_of(model, start, start, 5, OpenCL())
    toys = ensemble.draw(0, np.array([500, 300]))
    drawn = toys.drawn
    monkeypatch.setattr(opencl_launch.DeviceColumn, "values", None)
    monkeypatch.setattr(OpenCL, "upload", None)
    batch = toys.batch(ensemble)
    assert batch.newton(np.arange(2), batch.start).valid.all()
    assert toys.drawn is drawn


def test_a_small_set_is_evaluated_in_one_launch(device, monkeypatch):
    bound = bind(sums_of("mass", "hessian", False, OpenCL()), "mass", Layout(1000))
    x = around(model_of("mass")[2], 1)
    bound(x)
    started = []
    real = opencl_device.Device.run
    monkeypatch.setattr(opencl_device.Device, "run", lambda *args: started.append(1) or real(*args))
    bound(x)
    assert len(started) == 1


@pytest.mark.parametrize("kind", ["value", "gradient", "hessian", "fisher"])
def test_one_launch_or_three_give_the_same_sums(device, monkeypatch, kind):
    x = around(model_of("mass")[2], 3)
    compiled = sums_of("mass", kind, False, OpenCL())
    alone = bind(compiled, "mass", Layout(700))(x)
    monkeypatch.setattr(opencl_launch, "can_evaluate", lambda kernel: False)
    np.testing.assert_allclose(alone, bind(compiled, "mass", Layout(700))(x), rtol=NUMPY_SUM)


# whole fits


@pytest.mark.parametrize("name", ["mass", "kstarmumu"])
def test_toys_are_fitted_alike_in_one_block_and_in_many(device, monkeypatch, name):
    model, sizes = model_of(name)[0], [900, 3000, 0, 450, 2048, 2047]

    def study(few):
        monkeypatch.setattr(opencl_fit, "FEW_EVENTS", few)
        monkeypatch.setattr(fit_space, "FEW_EVENTS", few)
        OpenCL().open().fit_spaces.clear()
        return mf.toy_study(model, toys=len(sizes), events=sizes, seed=4, backend=OpenCL(), progress=False)

    usual, other = study(4000), study(100)
    np.testing.assert_array_equal(usual.valid, other.valid)
    good = usual.valid
    assert good.any()
    assert (np.abs(other.values - usual.values) <= REPEATED * usual.errors)[good].all()


def test_toys_that_need_more_steps_go_on_without_the_others(device, monkeypatch):
    model = model_of("mass")[0]
    start = all_values(model, None)
    ensemble = ensemble_of(model, start, start, 5, OpenCL())
    sizes = np.array([900, 3000, 450, 40_000, 30, 2047])
    together = fit_rows(ensemble, sizes)
    for steps in ("FIRST_STEPS", "MORE_STEPS", "QUICK_FIRST_STEPS", "QUICK_STEPS"):
        monkeypatch.setattr(fit_space, steps, 1)
    np.testing.assert_array_equal(fit_rows(ensemble, sizes), together)


def test_the_step_is_one_text_for_all_models_and_groups(device):
    x = mf.Observable("x", 0.0, 1.0)
    slopes = [mf.Parameter(name, -1.0, -3.0, 3.0) for name in "ab"]
    texts = []
    for model in (mf.Exponential(x, slopes[0]), mf.Density((slopes[1] * x).expr ** 2 + 1, x)):
        job = ensemble_of(model, backend=OpenCL()).whole_fit()
        texts += [opencl_fit.FitRunner(OpenCL().open(), job).source(group) for group in (32, 64)]
    assert len({source.driver.text for source in texts}) == 1
    assert len({tuple(source.texts) for source in texts}) == len(texts)


def test_a_toy_has_the_same_bits_in_any_company(device):
    model = model_of("mass")[0]
    start = all_values(model, None)
    ensemble = ensemble_of(model, start, start, 5, OpenCL())
    sizes = np.array([900, 3000, 450, 40_000, 2048, 2047, 33_000])
    together = ensemble.draw(3, sizes).fit_whole(ensemble)
    for k in range(len(sizes)):
        alone = ensemble.draw(3 + k, sizes[k : k + 1]).fit_whole(ensemble)
        np.testing.assert_array_equal(alone.values[0], together.values[k])
        np.testing.assert_array_equal(alone.errors[0], together.errors[k])


def test_toys_have_the_same_bits_in_any_number_of_launches(device, monkeypatch):
    model = model_of("mass")[0]
    start = all_values(model, None)
    ensemble = ensemble_of(model, start, start, 5, OpenCL())
    sizes = np.array([700, 3000, 450, 40_000, 1900, 600, 700, 1, 33_000, 800, 2500, 900])
    together = fit_rows(ensemble, sizes, first=3)
    monkeypatch.setattr(opencl_fit, "MAX_TOYS", 2)
    np.testing.assert_array_equal(fit_rows(ensemble, sizes, first=3), together)
    monkeypatch.setattr(opencl_fit, "MAX_TOYS", 100)
    monkeypatch.setattr(opencl_fit, "MAX_BYTES", 30_000)
    np.testing.assert_array_equal(fit_rows(ensemble, sizes, first=3), together)


@pytest.mark.parametrize("stored", [False, True])
def test_buffers_of_earlier_fits_serve_other_truths_starts_and_measurements(device, stored):
    spaces, model, sizes = OpenCL().open().fit_spaces, model_of("mass")[0], np.array([300, 500])
    start = all_values(model, None)
    other = {**start, "fsig": 0.6 * start["fsig"]}

    def fits(*, clear):
        found = []
        for k, (truth, first) in enumerate([(start, start), (other, start), (start, other), (start, start)]):
            if clear:
                spaces.clear()
            ensemble = ensemble_of(model, truth, first, 5 + k // 3, OpenCL())
            toys = ensemble.draw(3, sizes)
            found.append((toys.stored() if stored else toys).fit_whole(ensemble).values)
        return np.array(found)

    apart = fits(clear=True)
    held = len(spaces)
    np.testing.assert_array_equal(fits(clear=False), apart)
    assert len(spaces) == held == 1
    assert len(np.unique(apart[:, 0, 0])) == 4


def test_toys_of_several_truths_have_the_same_bits_in_one_launch(device):
    spaces, model = OpenCL().open().fit_spaces, model_of("mass")[0]
    start = all_values(model, None)
    other = {**start, "fsig": 0.6 * start["fsig"]}
    ensembles = [
        ensemble_of(model, truth, first, 5, OpenCL())
        for truth, first in [(start, start), (other, start), (start, other)]
    ]
    ensembles += [ensembles[1].fixing({"fsig": 0.3}), ensembles[1].fixing({"fsig": 0.2})]  # what is fixed
    toys = [
        e.draw(7 * k, sizes)
        for k, (e, sizes) in enumerate(
            zip(ensembles, np.array([[300, 2500], [500, 400], [30, 60], [500, 400], [700, 40]]), strict=True)
        )
    ]
    apart = [t.fit_whole(e) for t, e in zip(toys, ensembles, strict=True)]
    spaces.clear()
    together = fit_whole_together(list(zip(toys, ensembles, strict=True)))
    assert len(spaces) == 3  # small and large toys of four parameters, and toys of three
    for one, some in zip(apart, together, strict=True):
        for name in ("values", "errors", "nll", "edm", "valid"):
            np.testing.assert_array_equal(getattr(some, name), getattr(one, name))


def test_large_copies_go_in_pieces_through_slots(device, monkeypatch):
    """Only devices with memory of their own do this, so that it is made to happen here."""
    monkeypatch.setattr(staging, "PIECE", 1 << 12)
    monkeypatch.setattr(opencl_device.Device, "is_staged", lambda self, size: size > 0)
    device = opencl_device.Device(device, OpenCL().open().device)
    numbers = np.random.default_rng(1).random(10_001)
    buffer, copy, rest = device.send(numbers), np.empty((10_001, 1)), np.empty(9_000)
    device.read(buffer, copy)
    np.testing.assert_array_equal(copy[:, 0], numbers)
    device.read_done(buffer, rest[:7], device.cl.enqueue_marker(device.queue))
    device.read(buffer, rest[7:], 8 * 7)
    np.testing.assert_array_equal(rest, numbers[:9_000])


@pytest.mark.parametrize("name", ["f", "sigma", "wide", "tail"])
def test_one_text_serves_many_true_values_of_components_of_one_form(device, monkeypatch, name):
    monkeypatch.setattr(opencl_device.Device, "max_numbers", 512)  # as on a GPU
    x, mu, n = mf.Observable("x", 0, 10), mf.Parameter("mu", 4.4), mf.Parameter("n", 3)
    sigma, wide, tail = mf.Parameter("sigma", 0.5), mf.Parameter("wide", 0.9), mf.Parameter("tail", 1.5)
    peaks = [mf.CrystalBall(x, mu, s, tail, n) for s in (sigma, wide, wide)]
    model = mf.Sum([*peaks, mf.Exponential(x, -0.3)], fractions=[mf.Parameter("f", 0.3), 0.2, 0.2])
    draws = [Sampler(model, all_values(model, {name: value}), OpenCL()) for value in (0.41, 0.437, 0.477)]
    assert len({draw.compiled.program.source for draw in draws}) == 1


def test_one_text_serves_many_true_values(device):
    model = model_of("mass")[0]
    draws = [
        Sampler(model, all_values(model, {"fsig": fsig, "alpha": -0.9}), OpenCL()) for fsig in (0.21, 0.33)
    ]
    assert len({draw.compiled.program.source for draw in draws}) == 1
    kernels = [lift_numbers(draw.compiled.program.kernel, OpenCL().open().max_numbers) for draw in draws]
    assert kernels[0].kernel == kernels[1].kernel
    assert kernels[0].numbers != kernels[1].numbers


def test_more_numbers_than_a_device_takes_stay_in_the_text(device, monkeypatch):
    model, sizes = model_of("mass")[0], np.array([300, 200])

    def fit():
        start = all_values(model, None)
        toys = ensemble_of(model, start, start, 11, OpenCL()).draw(0, sizes)
        return toys.arrays[0]["m"], toys.fit().values

    given = fit()
    kernel = Sampler(model, all_values(model, None), OpenCL()).compiled.program.kernel
    monkeypatch.setattr(opencl_device.Device, "max_numbers", 3)
    assert lift_numbers(kernel, 3).kernel == kernel
    for a, b in zip(fit(), given, strict=True):
        np.testing.assert_allclose(a, b, rtol=SAME_RANDOM_NUMBER)


def test_lifted_numbers_are_those_of_the_kernel():
    model = model_of("mass")[0]
    kernel = Sampler(model, all_values(model, {"fsig": 0.21}), Cpu()).compiled.program.kernel
    lifted = lift_numbers(kernel, 100)
    assert 0.21 in lifted.numbers
    atoms = [a for line in lifted.kernel.per_event.lines for a in line.args if not isinstance(a, str)]
    assert set(atoms) <= PLAIN


# what is shown


@pytest.mark.parametrize("backend", [OpenCL(), Cpu()], ids=["opencl", "cpu"])
def test_sources_are_shown_when_asked_for(device, monkeypatch, capsys, backend):
    monkeypatch.setenv("MOREFIT_SHOW", "source")
    x, a = mf.Observable("x", 0.0, 1.0), mf.Parameter("a", 1.7, 0.0, 4.0)
    mf.Likelihood(mf.Density(1 + a * x, [x]), {"x": np.linspace(0.1, 0.9, 7)}, backend=backend).value([1.5])
    shown = capsys.readouterr().err
    assert ("__kernel" if backend == OpenCL() else "define") in shown


def test_explain_shows_the_source_for_a_device(device):
    model = model_of("mass")[0]
    text = mf.explain(model, backend=OpenCL()).source(2)
    assert "__kernel" in text
    assert "p_sigma" in text


@pytest.mark.parametrize("events", [300, 40_000])
def test_fits_that_take_turns_do_not_disturb_each_other(device, events):
    # buffers come from a pool: one that a kernel still needs must not be given away
    start = all_values(model_of("mass")[0], None)

    def ensemble(fsig):
        return ensemble_of(model_of("mass")[0], start | {"fsig": fsig}, start, 5, OpenCL())

    sizes = np.full(4, events)
    one, other = ensemble(0.2), ensemble(0.4)
    expected = [e.draw(0, sizes).fit_whole(e).values for e in (one, other)]
    for _ in range(2):
        for k, e in enumerate((one, other)):
            np.testing.assert_array_equal(e.draw(0, sizes).fit_whole(e).values, expected[k])
            mf.Likelihood(model_of("mass")[0], {"m": np.linspace(5.1, 6.9, events)}, backend=OpenCL()).value(
                [p.start for p in e.fitted.parameters]
            )


# how work is divided


@pytest.mark.parametrize("option", ["tiles_from", "events_per_item"])
@pytest.mark.parametrize(
    ("kind", "weighted"), [("hessian", True), ("fisher", False)], ids=["weighted hessian", "plain fisher"]
)
def test_any_division_of_the_work_gives_the_same_sums(device, option, kind, weighted):
    model, data, x = model_of("mass")
    weights = np.linspace(0.5, 1.5, len(data["m"])) if weighted else None
    usual, other = (
        getattr(mf.Likelihood(model, data, weights=weights, backend=b), kind)(x)
        for b in (OpenCL(), OpenCL(**{option: 2}))
    )
    np.testing.assert_allclose(other, usual, rtol=NUMPY_SUM, atol=NUMPY_SUM * np.abs(usual).max())


def test_sums_that_are_scaled_afterwards_give_the_same_hessian(device):
    m, p = mf.Observable("m", 5.0, 5.6), mf.Parameter
    peak = mf.CrystalBall(
        m, p("mu", 5.28, 5.2, 5.4), p("sigma", 0.02, 0.01, 0.1), p("alpha", 1.5, 0.5, 4), p("n", 3, 1.1, 9)
    )
    model = mf.Sum([peak, mf.Uniform(m)], fractions=[p("f", 0.5, 0, 1)])
    data, at = {"m": np.linspace(5.0, 5.6, 1003)}, np.array([q.start for q in model.parameters])
    usual, other = (mf.Likelihood(model, data, backend=b) for b in ("reference", OpenCL()))
    assert other.sums(2).program.kernel.sums.scaled
    exact, found = usual.hessian(at), other.hessian(at)
    np.testing.assert_allclose(found, exact, rtol=NUMPY_SUM, atol=NUMPY_SUM * np.abs(exact).max())


def test_toys_whose_sums_are_in_tiles_are_fitted_step_by_step(device):
    model = model_of("mass")[0]
    usual, other = (
        mf.toy_study(model, toys=4, events=300, seed=2, backend=b, progress=False)
        for b in (OpenCL(), OpenCL(tiles_from=2))
    )
    assert (np.abs(other.values - usual.values) <= REPEATED * usual.errors).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events_per_item": 0}, "events_per_item must be from 1 to 512, got 0"),
        ({"events_per_item": 513}, "events_per_item must be from 1 to 512, got 513"),
        ({"tiles_from": 0}, "tiles_from must be at least 1, got 0"),
        ({"tiles_from": None}, "tiles_from must be a whole number, got None"),
        ({"memory": "1 GB"}, "memory must be a whole number, got '1 GB'"),
    ],
)
def test_divisions_that_make_no_sense_are_refused(options, message):
    with pytest.raises(BackendError, match=message):
        OpenCL(**options)


def test_memory_of_fits_is_given_back_at_once(device):
    # garbage that waits for the collector would fill a device that nobody sees filling
    model = model_of("mass")[0]
    start = all_values(model, None)
    ensemble = ensemble_of(model, start, start, 5, OpenCL())
    ensemble.draw(0, np.array([300, 40_000])).fit_whole(ensemble)
    runners = [weakref.ref(r) for r in ensemble.whole_fit().spare]
    assert runners
    gc.disable()
    try:
        del ensemble
        assert all(r() is None for r in runners)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("events", "functions"), [(900, {"evaluate"}), (10**6, {"prepare", "sums", "combine"})]
)
def test_only_what_is_run_is_built_where_texts_are_cut(device, monkeypatch, nothing_open, events, functions):
    monkeypatch.setattr(opencl_device.Device, "dialect", replace(OPENCL_GPU, cut_texts=True))
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)
    program = OpenCL().compile(sums_of("mass", "value", False, OpenCL()).program.kernel)
    program.expect(Events.slices([events]))
    ahead.wait_for_all()
    built = OpenCL().open().programs.known
    assert {name for text, names in program.texts.items() if text in built for name in names} == functions


def test_functions_of_a_text_are_used_again(device):
    here, source = OpenCL().open().programs, "__kernel void nothing(__global int *x) { x[0] = 1; }"

    class Owner:
        pass

    one = Owner()
    first = here.kernels(one, source, {"nothing": "nothing"})["nothing"]
    other = Owner()
    assert here.kernels(other, source, {"nothing": "nothing"})["nothing"] is not first
    del one
    another = Owner()
    assert here.kernels(another, source, {"nothing": "nothing"})["nothing"] is first


def test_large_columns_that_cannot_change_are_sent_once():
    backend, column = OpenCL(), np.arange(200_000.0)
    column.flags.writeable = False
    first = backend.upload(column)
    assert backend.upload(column) is first
    assert backend.upload(first.values) is first  # drawn events are where they were drawn
    copies = backend.open().copies
    del column
    assert len([c for c in copies.columns.values() if c is first]) == 0


def test_a_column_that_changed_is_sent_again():
    backend, column = OpenCL(), np.arange(200_000.0)
    column.flags.writeable = False
    backend.upload(column)
    column.flags.writeable = True
    column[:] = 7.0
    assert (backend.upload(column).values == 7.0).all()


def test_copies_make_room_for_other_columns():
    column = np.arange(200_000.0)
    column.flags.writeable = False
    tight = OpenCL(memory=OpenCL().open().column_bytes + 2_000_000)
    tight.upload(column)
    other = np.ones(200_000)
    assert isinstance(tight.upload(other), DeviceColumn)
