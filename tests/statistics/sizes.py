"""How many events and toys the statistics tests take, on each backend."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers that tolerances follow from: with fewer toys a statement is the same, but less sharp."""

    sample: int = 100_000  # events of one observable that are compared with their density
    planes: int = 400_000  # events of several observables, of which a correlation is the smaller effect
    rare: int = 20_000_000  # events of which one in a million is looked for
    pairs: int = 2_000_000  # events that must know nothing of each other
    neighbours: int = 4000  # toys that must know nothing of each other
    single_fits: int = 300  # toys fitted one by one
    study: int = 2000  # toys of a study of pulls
    constructed: int = 3000  # toys at each tested value of a construction
    scanned: int = 21  # tested values of a construction
    uniform: int = 40  # experiments with a p-value each
    judged: int = 100  # toys for each of these p-values
    belts: int = 25  # tested values of a belt
    in_belts: int = 2000  # toys at each of them
    profiled: int = 300  # toys with a profile each
    fresh: int = 300  # datasets fitted one by one
    replicas: int = 1000  # of a bootstrap
    weighted: int = 1000  # toys with weights
    naive: int = 200  # of them, fitted one by one
    hessians: int = 300  # toys whose Hessians are averaged
    spread: int = 4000  # toys whose spread is compared with expected errors
    by_minuit: int = 1000  # toys of a paper model that are compared with Minuit


# On a CPU, OpenCL is some times slower than the backend made for it, and a test suite must end. Values that
# are tested lie apart by no round number: a text is built anew for each 0.5, 1 or 2 among them.
FEWER = Sizes(
    pairs=1_000_000,
    neighbours=1000,
    constructed=2500,
    scanned=20,
    belts=24,
    profiled=150,
    fresh=200,
    replicas=300,
    weighted=250,
    hessians=150,
    spread=1000,
    by_minuit=100,
)
SIZES = {"cpu": Sizes(), "opencl": FEWER}
