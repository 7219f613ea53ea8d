#!/usr/bin/env python3
"""Prints how training scales on this machine: the guide network (bench/guide_network.h) trained by Fit on one device,
mirrored on two logical CPUs, and by two workers; images/s, seconds an epoch, what is gained over one device on one core.

The batch is the global one, 256 or 512; each of two replicas does half of it. Needs a release build (./dev bench
scaling makes it) and two cores; processes are pinned to one core each, mirrored replicas share both.
"""

import argparse
import dataclasses
import pathlib
import sys
import time

from rows import conditions, programs, table, turns, workers
from rows.table import Contestant

EPOCH = 55_000  # images that the guide trains on: Fashion-MNIST without the 5,000 that validate
BATCHES = (256, 512)
HEADER = ["batch", "trained by", "images/s", "a step", "an epoch", "speed-up", "efficiency"]


@dataclasses.dataclass
class Case:
    """One way to train with a global batch."""

    batch: int
    name: str
    cores: int
    replicas: int
    side: Contestant


def cases(quick):
    """With one device for each replica's batch, to compare with."""
    def fit(batch, *flags, pin):
        return workers.fit(quick, f"--batch={batch}", *flags, steps=8, pin=pin)

    def alone(batch, threads=1):
        words = fit(batch, f"--threads={threads}", pin=threads == 1)
        return lambda: workers.figures(programs.run(words, limit=300), 1, 1)

    def mirrored(batch):
        words = fit(batch, "--strategy=mirrored", pin=False)
        return lambda: workers.figures(programs.run(words, limit=300), 1, 2)

    def several(batch):
        words = fit(batch, "--strategy=multi_worker", pin=True)
        return lambda: workers.figures(programs.launch(0, 2, *words, limit=300), 2, 2)

    ways = [("one device, 1 core", 1, 1, alone), ("one device, 2 cores", 2, 1, lambda batch: alone(batch, 2)),
            ("mirrored on 2 logical CPUs", 2, 2, mirrored), ("2 workers, a core each", 2, 2, several)]
    smallest = min(BATCHES) // 2
    found = [Case(smallest, ways[0][0], 1, 1, Contestant(f"batch {smallest}, {ways[0][0]}", alone(smallest)))]
    for batch in BATCHES:
        for name, cores, replicas, way in ways:
            found.append(Case(batch, name, cores, replicas, Contestant(f"batch {batch}, {name}", way(batch))))
    return found


def one_core(all_cases, batch):
    return next(case.side.median("images_per_s") for case in all_cases if case.batch == batch and case.cores == 1)


def row(case, all_cases):
    """Speed-up: over one device on one core with the same global batch. Efficiency: of as many such devices as there
    are cores, each with a replica's batch."""
    rate = case.side.median("images_per_s")
    cells = [str(case.batch), case.name, case.side.shown("images_per_s", "").replace("  (", " (")]
    if rate is None:
        return cells + ["-"] * 4
    whole, part = one_core(all_cases, case.batch), one_core(all_cases, case.batch // case.replicas)
    return cells + [f"{table.number(case.side.median('step_ms'))} ms", f"{table.number(EPOCH / rate)} s",
                    "-" if whole is None else f"{rate / whole:.2f} x",
                    "-" if part is None else f"{100 * rate / (case.cores * part):.0f} %"]


def markdown(rows):
    def shown(cells):
        return "| " + " | ".join(cells) + " |"
    return [shown(HEADER), shown(["--:", "---", "--:", "--:", "--:", "--:", "--:"]), *map(shown, rows)]


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench scaling", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="starts of each (3)")
    parser.add_argument("--quick", action="store_true", help="one short round; the figures mean little")
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path, help="also write the table there")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds: at least 1")
    args.rounds = 1 if args.quick else args.rounds
    return args


def main():
    args = parse()
    turns.end_on_signals("scaling")
    start, load, commit = time.monotonic(), turns.ForeignLoad(), conditions.commit()
    all_cases = cases(args.quick)
    turns.measure("scaling", [case.side for case in all_cases], args.rounds)
    told = (f"{conditions.machine()}; {conditions.loopback()}. "
            f"{conditions.run(args, commit, load.cores(), time.monotonic() - start)}")
    text = "\n".join([told, "", *markdown([row(case, all_cases) for case in all_cases])])
    print(text)
    if args.markdown:
        args.markdown.write_text(text + "\n")
    failures = [failure for case in all_cases for failure in case.side.failures]
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
