"""The rows of scaling on this machine. Fit trains the guide network (bench/guide_network.h) on one device, mirrored on
two logical CPUs, and with two workers.

The batch is the global batch, 256 or 512. Each of two replicas does half of it. Each process is pinned to one core.
Mirrored replicas share both cores. The row needs two cores. The first ratio is the speed-up over one device on one core
with the same global batch. The second ratio is the efficiency: it compares with two such devices, each with a replica's
batch."""

import dataclasses

from rows import programs, workers
from rows.table import Contestant, Line

BATCHES = (256, 512)
CORES = 2


@dataclasses.dataclass
class Case:
    """Measures one way to train with a global batch."""

    batch: int
    name: str
    cores: int
    replicas: int
    side: Contestant


def _figures(text, processes, replicas):
    found = workers.figures(text, processes, replicas)
    return {"images_per_s": found["images_per_s"], "step_ms": found["step_ms"],
            "of_all_cores": CORES * found["images_per_s"]}


def cases(quick):
    """Measures one device with a replica's batch, to compare with."""
    def fit(batch, *flags, pin):
        return workers.fit(quick, f"--batch={batch}", *flags, steps=8, pin=pin)

    def alone(batch, threads=1):
        words = fit(batch, f"--threads={threads}", pin=threads == 1)
        return lambda: _figures(programs.run(words, limit=300), 1, 1)

    def mirrored(batch):
        words = fit(batch, "--strategy=mirrored", pin=False)
        return lambda: _figures(programs.run(words, limit=300), 1, 2)

    def several(batch):
        words = fit(batch, "--strategy=multi_worker", pin=True)
        return lambda: _figures(programs.launch(0, 2, *words, limit=300), 2, 2)

    ways = [("one device, 1 core", 1, 1, alone), ("one device, 2 cores", 2, 1, lambda batch: alone(batch, 2)),
            ("mirrored on 2 logical CPUs", 2, 2, mirrored), ("2 workers, a core each", 2, 2, several)]
    found = []
    for batch in (min(BATCHES) // 2, *BATCHES):
        for name, cores, replicas, way in ways if batch in BATCHES else ways[:1]:
            found.append(Case(batch, name, cores, replicas, Contestant(f"batch {batch}, {name}", way(batch))))
    return found


def lines(all_cases):
    def one_core(batch):
        return next(case.side for case in all_cases if case.batch == batch and case.cores == 1)

    def line(what, case, peer=None, figure="images_per_s"):
        return Line(what, "images/s", case.side, "images_per_s", peer, figure, larger_is_better=True)

    found = []
    for case in all_cases:
        name = f"the guide network in `Fit`, batch {case.batch}, {case.name}"
        if case.cores == 1:
            found.append(line(name, case))
            continue
        part = case.batch // case.replicas
        found.append(line(name, case, one_core(case.batch).also("speed-up: over one device, 1 core, the same batch")))
        found.append(line("the same", case, one_core(part).also(f"efficiency: over {CORES} of one device, 1 core, batch "
                                                                f"{part}"), "of_all_cores"))
        found.append(Line("the same, a step", "ms", case.side, "step_ms"))
    return found


def prepare(_, quick):
    all_cases = cases(quick)
    return [case.side for case in all_cases], lines(all_cases)
